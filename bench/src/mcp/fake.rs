//! A server that only pretends, in a process of its own: quick, slow, or one that never answers.

use std::io::{BufRead, Write};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Result;

/// How long a slow one takes before it says anything.
const SLOW: Duration = Duration::from_secs(3);

/// What a server is like.
pub(super) const QUICK: &str = "quick";
pub(super) const LAZY: &str = "slow";
pub(super) const MUTE: &str = "mute";

/// Names and descriptions of tools as servers have them.
pub(super) fn tools(first: usize, count: usize) -> impl Iterator<Item = (String, String, Value)> {
    const VERBS: [&str; 8] =
        ["list", "create", "update", "delete", "search", "export", "archive", "share"];
    const THINGS: [&str; 12] = [
        "issue",
        "invoice",
        "calendar_event",
        "contact",
        "repository",
        "message",
        "ticket",
        "dashboard",
        "file",
        "pipeline",
        "payment",
        "document",
    ];
    (first..first + count).map(|number| {
        let verb = VERBS.iter().cycle().nth(number).unwrap_or(&"do");
        let thing = THINGS.iter().cycle().nth(number / VERBS.len()).unwrap_or(&"thing");
        let name = format!("{verb}_{thing}_{number}");
        let thing = thing.replace('_', " ");
        let description = format!(
            "Lets you {verb} a {thing} in workspace {number}. Returns the {thing} with its identifier, its owner and \
             the time of its last change; fails if the {thing} is locked by somebody else."
        );
        let text = |what: &str| json!({ "type": "string", "description": what });
        let schema = json!({
            "type": "object",
            "properties": {
                "identifier": text("Which one, as an earlier answer named it."),
                "workspace": text("Where it is; the usual one if this is left out."),
                "limit": { "type": "integer", "minimum": 1, "description": "How many at most." },
            },
            "required": ["identifier"],
        });
        (name, description, schema)
    })
}

/// Pretends to be a server: `mcp-fake HABIT FIRST COUNT`, with so many tools from that number on.
pub(crate) fn pretend(mut words: impl Iterator<Item = String>) -> Result<()> {
    let mut next = || words.next().ok_or("usage: convoke-bench mcp-fake HABIT FIRST COUNT");
    let (habit, first, count) = (next()?, next()?.parse()?, next()?.parse()?);
    if habit == LAZY {
        std::thread::sleep(SLOW);
    }
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let Some(id) = request.get("id").filter(|_| habit != MUTE) else { continue };
        let answer = match request.get("method").and_then(Value::as_str).unwrap_or_default() {
            "initialize" => json!({ "result": {
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            } }),
            "tools/list" => {
                let tool = |(name, description, schema)| json!({ "name": name, "description": description, "inputSchema": schema });
                json!({ "result": { "tools": tools(first, count).map(tool).collect::<Vec<_>>() } })
            }
            _ => json!({ "error": { "code": -32601, "message": "Method not found" } }),
        };
        let mut answer = answer;
        if let Some(answer) = answer.as_object_mut() {
            answer.insert("jsonrpc".to_owned(), json!("2.0"));
            answer.insert("id".to_owned(), id.clone());
        }
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}
