//! Where programs keep their lists of servers, and other words of theirs for the same things.

use serde_json::{Map, Value};

use super::{Dialect, habits};

/// What is read, for whoever brought something else.
pub(super) const WHAT_IS_READ: &str = "there are no servers in it: read are `mcpServers` (.mcp.json, Claude, Cursor, \
Windsurf, Gemini CLI), `servers` and `mcp.servers` (VS Code), and `mcp` (OpenCode), each an object with a key a server";

/// A list of servers, and where it stands.
pub(super) struct Found<'a> {
    pub(super) dialect: Dialect,
    pub(super) place: &'static str,
    pub(super) servers: &'a Map<String, Value>,
}

/// Finds the list of servers.
pub(super) fn servers_of(value: &Value) -> Option<Found<'_>> {
    if let Some(servers) = value.get("mcpServers").and_then(Value::as_object) {
        let gemini = ["httpUrl", "includeTools", "excludeTools", "trust"];
        let is_gemini = |entry: &Value| gemini.iter().any(|key| entry.get(key).is_some());
        let plain = servers.values().all(|entry| entry.get("type").is_some());
        let dialect = if habits::is_gemini(value) || (!plain && servers.values().any(is_gemini)) {
            Dialect::Gemini
        } else {
            Dialect::Common
        };
        return Some(Found { dialect, place: "mcpServers", servers });
    }
    if let Some(servers) = value.get("servers").and_then(Value::as_object) {
        return Some(Found { dialect: Dialect::VsCode, place: "servers", servers });
    }
    let servers = value.get("mcp")?.as_object()?;
    if servers.values().any(is_of_open_code) {
        return Some(Found { dialect: Dialect::OpenCode, place: "mcp", servers });
    }
    let servers = servers.get("servers")?.as_object()?;
    Some(Found { dialect: Dialect::VsCode, place: "mcp.servers", servers })
}

fn is_of_open_code(entry: &Value) -> bool {
    matches!(entry.get("type").and_then(Value::as_str), Some("local" | "remote"))
}

/// Returns an entry with what has another name, or another form, in some programs as most of them write it.
pub(super) fn common(dialect: Dialect, mut entry: Map<String, Value>) -> Map<String, Value> {
    // Windsurf.
    rename(&mut entry, "serverUrl", "url");
    if dialect == Dialect::OpenCode {
        rename(&mut entry, "environment", "env");
        let kind = match entry.get("type").and_then(Value::as_str) {
            Some("local") => Some("stdio"),
            Some("remote") => Some("http"),
            _ => None,
        };
        if let Some(kind) = kind {
            entry.insert("type".to_owned(), kind.into());
        }
        if let Some(Value::Bool(enabled)) = entry.remove("enabled") {
            entry.insert("disabled".to_owned(), (!enabled).into());
        }
        entry = entry.into_iter().map(|(key, value)| (key, with_dollars(value))).collect();
    }
    let line = entry.get("command").and_then(Value::as_array).cloned();
    if let Some([command @ Value::String(_), first @ ..]) = line.as_deref() {
        entry.insert("command".to_owned(), command.clone());
        let more = match entry.remove("args") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(more)) => more,
            // It is said to be wrong where lists are read.
            Some(other) => vec![Value::Array(vec![other])],
        };
        entry.insert("args".to_owned(), first.iter().cloned().chain(more).collect());
    }
    entry
}

/// `OpenCode` writes `{env:NAME}` for a variable.
fn with_dollars(value: Value) -> Value {
    match value {
        Value::String(text) => text.replace("{env:", "${").into(),
        Value::Array(items) => items.into_iter().map(with_dollars).collect(),
        Value::Object(fields) => Value::Object(
            fields.into_iter().map(|(key, value)| (key, with_dollars(value))).collect(),
        ),
        other => other,
    }
}

fn rename(entry: &mut Map<String, Value>, theirs: &str, ours: &str) {
    if !entry.contains_key(ours)
        && let Some(value) = entry.remove(theirs)
    {
        entry.insert(ours.to_owned(), value);
    }
}

/// Tells whether an address is, by its last word, one of the old HTTP+SSE transport.
pub(super) fn is_of_events(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.trim_end_matches('/').ends_with("/sse")
}
