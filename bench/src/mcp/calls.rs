//! Clients: the same calls of the same servers by ours and by the official ones.

use convoke::mcp::client::Revision;
use serde_json::{Value, json};

use super::driver::{Driver, Ours, Script};
use super::figures::{WAYS, compare, compare_cpu, in_rounds};
use super::peers::{Listening, Peers, Target};
use crate::Result;
use crate::table::Table;

const CURRENT_TIME: &str = "get_current_time";

pub(super) fn measure(table: &mut Table, peers: &Peers) -> Result<()> {
    let hello = json!({ "message": "hello" });
    match peers.node("mcp-server-everything") {
        None => table.fact("`echo` of the reference server", "not installed".to_owned(), ""),
        Some(line) => {
            let over_streams = Target::Program([&*line, &["stdio".to_owned()]].concat());
            clients(table, peers, "`echo` over stdio", &over_streams, ("echo", &hello))?;
            let server = Listening::start(&line, |command, port| {
                command.arg("streamableHttp").env("PORT", port.to_string());
            })?;
            let over_http = Target::Url(server.url.clone());
            clients(table, peers, "`echo` over HTTP", &over_http, ("echo", &hello))?;
        }
    }
    let zone = json!({ "timezone": "UTC" });
    match peers.python("mcp-server-time") {
        None => table.fact("`get_current_time` of `time`", "not installed".to_owned(), ""),
        Some(line) => {
            let what = "`get_current_time` over stdio";
            clients(table, peers, what, &Target::Program(line), (CURRENT_TIME, &zone))?;
        }
    }
    Ok(())
}

/// Has every client there is make the same calls.
fn clients(
    table: &mut Table,
    peers: &Peers,
    what: &str,
    target: &Target,
    (tool, arguments): (&str, &Value),
) -> Result<()> {
    let mut names = Vec::new();
    let mut drivers: Vec<Box<dyn Driver>> = vec![Box::new(Ours::connect(target, tool, arguments)?)];
    if peers.has_typescript() {
        names.push("TypeScript client");
        drivers.push(Box::new(Script::typescript(peers, target, tool, arguments)?));
    }
    if let Some(python) = peers.python("python") {
        names.push("Python client");
        drivers.push(Box::new(Script::python(&python, target, tool, arguments)?));
    }
    if tool == CURRENT_TIME {
        // It speaks both forms, and the TypeScript client only the older one.
        names.push("our client, with a handshake");
        let older = Ours::connect_in(Revision::Handshake, target, tool, arguments)?;
        drivers.push(Box::new(older));
    }
    for (at_once, way) in WAYS {
        let figures = in_rounds(&mut drivers, at_once)?;
        let Some((ours, others)) = figures.split_first() else { continue };
        for (name, theirs) in names.iter().zip(others) {
            let what = format!("{what}, {way}");
            compare(table, &what, name, *ours, *theirs);
            compare_cpu(table, &what, name, *ours, *theirs);
        }
    }
    Ok(())
}
