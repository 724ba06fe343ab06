//! Servers: a file read through ours and through one of others, by the same clients.

use std::path::Path;
use std::sync::Arc;

use convoke::Runtime;
use convoke::mcp::serve::{CallWatch, HttpSettings, Service, ToolOffer, serve_http, serve_stdio};
use convoke::tools::{NullSink, Recorder};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::driver::{Driver, Ours, Script};
use super::figures::{WAYS, compare, in_rounds};
use super::peers::{Listening, Peers, Target, script};
use crate::Result;
use crate::table::Table;

pub(super) fn measure(table: &mut Table, peers: &Peers) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let place = directory.path().canonicalize()?;
    let file = place.join("file.txt");
    let text: String =
        "All work and no play makes a dull file.\n".chars().cycle().take(1024).collect();
    std::fs::write(&file, text)?;
    let arguments = json!({ "path": file });
    let this = std::env::current_exe()?.display().to_string();
    let shown = place.display().to_string();
    let line = vec![this, "mcp-serve".to_owned(), shown.clone()];

    match peers.node("mcp-server-filesystem") {
        None => table.fact("a file of 1 KB through MCP, stdio", "not installed".to_owned(), ""),
        Some(mut theirs) => {
            theirs.push(shown);
            let ours = (Target::Program(line.clone()), "read_file");
            let theirs = (Target::Program(theirs), "read_text_file");
            servers(table, peers, ("stdio", "reference server"), &ours, &theirs, &arguments)?;
        }
    }
    match peers.python("python") {
        None => table.fact("a file of 1 KB through MCP, HTTP", "not installed".to_owned(), ""),
        Some(mut theirs) => {
            theirs.push(script("server.py"));
            let start = |line: &[String]| {
                Listening::start(line, |command, port| {
                    command.arg(port.to_string());
                })
            };
            let (ours, theirs) = (start(&line)?, start(&theirs)?);
            let target = |server: &Listening| (Target::Url(server.url.clone()), "read_file");
            let sides = (target(&ours), target(&theirs));
            servers(table, peers, ("HTTP", "Python server"), &sides.0, &sides.1, &arguments)?;
        }
    }
    Ok(())
}

/// Has our client and the official Python one read from both servers.
fn servers(
    table: &mut Table,
    peers: &Peers,
    (way_in, peer): (&str, &str),
    ours: &(Target, &str),
    theirs: &(Target, &str),
    arguments: &Value,
) -> Result<()> {
    let mut drivers: Vec<Box<dyn Driver>> = Vec::new();
    for (target, tool) in [ours, theirs] {
        drivers.push(Box::new(Ours::connect(target, tool, arguments)?));
    }
    let mut clients = vec!["our client"];
    if let Some(python) = peers.python("python") {
        clients.push("the Python client");
        for (target, tool) in [ours, theirs] {
            drivers.push(Box::new(Script::python(&python, target, tool, arguments)?));
        }
    }
    for (at_once, way) in WAYS {
        let figures = in_rounds(&mut drivers, at_once)?;
        for (client, pair) in clients.iter().zip(figures.chunks_exact(2)) {
            if let [ours, theirs] = pair {
                let what = format!("a file of 1 KB over {way_in}, {client}, {way}");
                compare(table, &what, peer, *ours, *theirs);
            }
        }
    }
    Ok(())
}

/// Serves the built-in tools for one directory: `mcp-serve DIRECTORY [PORT]`.
pub(crate) fn serve(mut words: impl Iterator<Item = String>) -> Result<()> {
    let directory = words.next().ok_or("usage: convoke-bench mcp-serve DIRECTORY [PORT]")?;
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (service, settings) = (service(Path::new(&directory))?, HttpSettings::default());
    threads.block_on(async {
        match words.next() {
            None => {
                let (reader, writer) = (tokio::io::stdin(), tokio::io::stdout());
                serve_stdio(service, reader, writer, settings.stop).await?;
            }
            Some(port) => {
                let listener = TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
                serve_http(service, listener, settings).await?;
            }
        }
        Ok(())
    })
}

fn service(directory: &Path) -> Result<Service> {
    let runtime = Runtime::builder(directory).build()?;
    let watch = CallWatch::over(Arc::new(NullSink));
    let clock = Arc::clone(runtime.context().clock());
    let recorder = Recorder::new("served", watch.clone(), clock);
    let executors = runtime.executor().view(runtime.offered().clone()).recorder(recorder);
    Ok(Service::new("bench", "1", Arc::new(ToolOffer::new(executors, watch))))
}
