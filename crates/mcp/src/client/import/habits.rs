//! What some programs say beside their list of servers, and how they write variables.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Dialect, Imported, plain_name};
use crate::client::config::{ServerConfig, Transport};

/// Where Claude keeps the servers of one directory.
const PROJECTS: &str = "projects";
/// Settings of Gemini CLI that no other program has.
const GEMINI_SETTINGS: [&str; 6] =
    ["mcp", "selectedAuthType", "security", "general", "ui", "excludeMCPServers"];

/// Tells whether settings are those of Gemini CLI, whatever its servers look like.
pub(super) fn is_gemini(settings: &Value) -> bool {
    GEMINI_SETTINGS.iter().any(|key| settings.get(key).is_some())
}

/// What was allowed without a question there, for servers of Cline and Roo Code.
const APPROVED: [&str; 2] = ["autoApprove", "alwaysAllow"];

/// Tells whether a server was written by a program that writes times in seconds.
pub(super) fn writes_seconds(entry: &Map<String, Value>) -> bool {
    APPROVED.iter().any(|key| entry.contains_key(*key))
}

/// Says why a key of another program is not taken over, where it is no slip of the fingers.
pub(super) fn left_out(key: &str) -> Option<&'static str> {
    match key {
        "headersHelper" => Some(
            "no program is asked for headers here; write `headers`, with `${NAME}` for what is secret",
        ),
        "authProviderType" => Some("`convoke mcp login` logs in to servers that want it"),
        _ if APPROVED.contains(&key) => {
            Some("what needs no question there is asked about here; a rule of the policy allows it")
        }
        _ => None,
    }
}

impl Imported {
    /// Reads the servers that Claude keeps for one directory, and counts those of others.
    pub(super) fn projects(&mut self, settings: &Value, directory: &Path) {
        let projects = settings.get(PROJECTS).and_then(Value::as_object);
        let mut others = (0, 0);
        for (place, project) in projects.into_iter().flatten() {
            let servers = project.get("mcpServers").and_then(Value::as_object);
            let Some(servers) = servers.filter(|servers| !servers.is_empty()) else { continue };
            if Path::new(place) != directory {
                others = (others.0 + servers.len(), others.1 + 1);
                continue;
            }
            let key = format!("{PROJECTS}.{place}.mcpServers");
            let message = format!("{} of this directory too", counted(servers.len(), "server"));
            self.warning(&key, message);
            self.entries(Dialect::Common, &key, servers);
        }
        if let (servers @ 1.., places) = others {
            let (servers, places) =
                (counted(servers, "server"), counted_as(places, "directory", "directories"));
            let message =
                format!("{servers} of {places} left out; import again where they are wanted");
            self.warning(PROJECTS, message);
        }
    }

    /// Switches off what is switched off in Gemini CLI.
    pub(super) fn switch_off(&mut self, settings: &Value) {
        let names = |new: &str, old: &str| -> Option<Vec<String>> {
            let list = settings.pointer(new).or_else(|| settings.get(old))?.as_array()?;
            // By what the servers are called here, which may be something else.
            Some(list.iter().filter_map(Value::as_str).map(plain_name).collect())
        };
        let allowed = names("/mcp/allowed", "allowMCPServers");
        let excluded = names("/mcp/excluded", "excludeMCPServers").unwrap_or_default();
        let mut off = Vec::new();
        for server in &mut self.servers {
            let is_in = |names: &Vec<String>| names.contains(&server.name);
            if is_in(&excluded) || allowed.as_ref().is_some_and(|allowed| !is_in(allowed)) {
                server.enabled = false;
                off.push(format!("`{}`", server.name));
            }
        }
        if !off.is_empty() {
            let message = format!("{} switched off there, and so here", off.join(", "));
            self.warning("mcp", message);
        }
    }

    /// Says which texts look like variables and are none here.
    pub(super) fn warn_of_dollars(&mut self, key: &str, config: &ServerConfig) {
        let texts: Vec<&String> = match &config.transport {
            Transport::Program { command, args, env, .. } => {
                std::iter::once(command).chain(args).chain(env.values()).collect()
            }
            Transport::Http { url, headers } => {
                std::iter::once(url).chain(headers.values()).collect()
            }
        };
        for text in texts {
            let name = text.strip_prefix('$').map(|rest| word(rest).0).unwrap_or_default();
            if !name.is_empty() {
                let message = format!(
                    "`${name}` is taken as it stands; write `${{{name}}}` if the variable is meant"
                );
                self.warning(key, message);
            }
        }
    }
}

/// Returns an entry of Gemini CLI with its variables written as they are here: `$NAME` is `${NAME}`.
pub(super) fn of_gemini(entry: &Map<String, Value>) -> Map<String, Value> {
    entry.iter().map(|(key, value)| (key.clone(), with_braces(value))).collect()
}

fn with_braces(value: &Value) -> Value {
    match value {
        Value::String(text) => braced(text).into(),
        Value::Array(items) => items.iter().map(with_braces).collect(),
        Value::Object(fields) => Value::Object(of_gemini(fields)),
        other => other.clone(),
    }
}

fn braced(text: &str) -> String {
    let mut pieces = text.split('$');
    let mut braced = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match word(piece) {
            ("", rest) => braced.extend(["$", rest]),
            (name, rest) => braced.extend(["${", name, "}", rest]),
        }
    }
    braced
}

/// Splits the name of a variable from the beginning of a text; it may be empty.
fn word(text: &str) -> (&str, &str) {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return ("", text);
    }
    text.split_at(text.find(|letter| !is_word(letter)).unwrap_or(text.len()))
}

fn counted(count: usize, what: &str) -> String {
    counted_as(count, what, &format!("{what}s"))
}

fn counted_as(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}
