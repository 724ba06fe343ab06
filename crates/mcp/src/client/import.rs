//! Servers as users have configured them elsewhere.
//!
//! The text is JSON, comments and all, in one of three dialects, told apart by what is in it. Nothing is
//! expanded: `${VAR}` and `${VAR:-x}` stay as they are, for whoever knows the environment, and so do
//! [`WORKSPACE_FOLDER`] and its kin, which editors know. `${env:VAR}`, as editors write it, becomes `${VAR}`. Every problem names the key it is about;
//! a server with a problem is left out only if it could not be used, and the others are read.

mod habits;
mod relaxed;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use convoke_core::nearest::{did_you_mean, nearest};
use serde_json::{Map, Value};

use self::relaxed::strict;
use super::config::{ServerConfig, Transport, Trust};

/// What editors call the directory that is worked in, in `${…}`.
pub const WORKSPACE_FOLDER: &str = "workspaceFolder";
/// What editors call the last name of that directory.
pub const WORKSPACE_FOLDER_NAME: &str = "workspaceFolderBasename";
/// What editors call the home directory.
pub const USER_HOME: &str = "userHome";

/// Who wrote a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// `.mcp.json` and Claude: `mcpServers` with `type`, `command`, `url`.
    Common,
    /// Gemini CLI: `mcpServers` with `httpUrl`, `trust`, `includeTools`.
    Gemini,
    /// VS Code: `servers` with `type`, and `inputs`.
    VsCode,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The servers that can be used, by name.
    pub servers: Vec<ServerConfig>,
    /// What is wrong, or not understood.
    pub problems: Vec<Problem>,
}

/// Something wrong in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key it is about, as `mcpServers.files.command`; empty for the whole text.
    pub key: String,
    /// What is wrong, and what to do.
    pub message: String,
    /// How bad it is.
    pub severity: Severity,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something was left out of a server that is used.
    Warning,
    /// A server, or all of them, were left out.
    Error,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            return formatter.write_str(&self.message);
        }
        write!(formatter, "{}: {}", self.key, self.message)
    }
}

/// Reads the servers of a configuration, with its problems.
///
/// ```
/// use convoke_mcp::client::import;
///
/// let read = import(r#"{ "mcpServers": { "time": { "command": "mcp-server-time" } } }"#);
/// assert_eq!(read.servers[0].name, "time");
/// assert!(read.problems.is_empty());
/// ```
pub fn import(text: &str) -> Imported {
    read(text, None)
}

/// Reads the servers of a configuration that somebody uses in this directory: those that Claude keeps for it are read
/// as well, before the others, and those of other directories are counted.
pub fn import_in(text: &str, directory: &Path) -> Imported {
    read(text, Some(directory))
}

fn read(text: &str, directory: Option<&Path>) -> Imported {
    let mut read = Imported::default();
    let parsed = serde_json::from_str(text).or_else(|_| serde_json::from_str(&strict(text)));
    let value: Value = match parsed {
        Ok(value) => value,
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            let message = format!("line {line}, column {column}: this is not JSON: {reason}");
            read.error("", message);
            return read;
        }
    };
    if let Some(directory) = directory {
        read.projects(&value, directory);
    }
    let Some((dialect, servers)) = servers_of(&value) else {
        let key = ["mcpServers", "servers"].into_iter().find(|key| value.get(key).is_some());
        match key {
            Some(key) => read.error(key, "this has to be an object, a key a server".to_owned()),
            None if !read.servers.is_empty() => {}
            None => {
                read.error("", "there is neither `mcpServers` nor `servers` in it".to_owned());
            }
        }
        return read;
    };
    let place = if dialect == Dialect::VsCode { "servers" } else { "mcpServers" };
    if dialect == Dialect::VsCode && value.get("inputs").is_some() {
        let message = "values that are asked for (`${input:…}`) are not known here: put them into the \
                       environment and write `${NAME}`";
        read.warning("inputs", message.to_owned());
    }
    read.entries(dialect, place, servers);
    if dialect == Dialect::Gemini {
        read.switch_off(&value);
    }
    read
}

fn servers_of(value: &Value) -> Option<(Dialect, &Map<String, Value>)> {
    if let Some(servers) = value.get("mcpServers").and_then(Value::as_object) {
        let gemini = ["httpUrl", "includeTools", "excludeTools", "trust"];
        let is_gemini = |entry: &Value| gemini.iter().any(|key| entry.get(key).is_some());
        let plain = servers.values().all(|entry| entry.get("type").is_some());
        let dialect = if habits::is_gemini(value) || (!plain && servers.values().any(is_gemini)) {
            Dialect::Gemini
        } else {
            Dialect::Common
        };
        return Some((dialect, servers));
    }
    Some((Dialect::VsCode, value.get("servers")?.as_object()?))
}

/// Returns an entry in which variables are written in one way.
fn plain_map(entry: &Map<String, Value>) -> Map<String, Value> {
    entry.iter().map(|(key, value)| (key.clone(), plain(value))).collect()
}

fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) => text.replace("${env:", "${").into(),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => Value::Object(plain_map(fields)),
        other => other.clone(),
    }
}

/// Returns the name of a server as it is written here: letters, digits, `_` and `-`.
fn plain_name(name: &str) -> String {
    const LONGEST: usize = 64;
    let plain = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => letter,
        _ => '-',
    };
    let plain: String = name.chars().map(plain).take(LONGEST).collect();
    let has_sense = |name: &str| name.contains(|letter: char| letter.is_ascii_alphanumeric());
    if plain == name {
        return if has_sense(name) { plain } else { String::new() };
    }
    plain.trim_matches('-').to_owned()
}

/// The keys of each dialect.
const fn known_keys(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Common => {
            &["type", "command", "args", "env", "url", "headers", "cwd", "disabled", "timeout"]
        }
        Dialect::Gemini => &[
            "command",
            "args",
            "env",
            "cwd",
            "url",
            "httpUrl",
            "headers",
            "timeout",
            "trust",
            "includeTools",
            "excludeTools",
            "description",
            "disabled",
            "type",
        ],
        Dialect::VsCode => &[
            "type", "command", "args", "env", "envFile", "cwd", "url", "headers", "gallery",
            "version",
        ],
    }
}

impl Imported {
    fn error(&mut self, key: &str, message: String) {
        self.problems.push(Problem { key: key.to_owned(), message, severity: Severity::Error });
    }

    fn warning(&mut self, key: &str, message: String) {
        self.problems.push(Problem { key: key.to_owned(), message, severity: Severity::Warning });
    }

    /// Reads a list of servers. Of two of one name the first counts.
    fn entries(&mut self, dialect: Dialect, place: &str, servers: &Map<String, Value>) {
        for (name, entry) in servers {
            let key = format!("{place}.{name}");
            let Some(entry) = entry.as_object() else {
                self.error(&key, "this has to be an object".to_owned());
                continue;
            };
            let own = plain_name(name);
            if own.is_empty() {
                self.error(&key, "this is no name: it has neither letters nor digits".to_owned());
                continue;
            }
            if self.servers.iter().any(|server| server.name == own) {
                self.warning(&key, format!("left out, since another is called `{own}`"));
                continue;
            }
            if own != *name {
                self.warning(&key, format!("it is called `{own}` here"));
            }
            let mut entry = plain_map(entry);
            if dialect == Dialect::Gemini {
                entry = habits::of_gemini(&entry);
            }
            self.server(dialect, &own, &key, &entry);
        }
    }

    fn server(&mut self, dialect: Dialect, name: &str, key: &str, entry: &Map<String, Value>) {
        for unknown in entry.keys().filter(|own| !known_keys(dialect).contains(&own.as_str())) {
            let close = nearest(unknown, known_keys(dialect).iter().copied());
            let message = format!("this key is not known and was left out{}", did_you_mean(&close));
            self.warning(&format!("{key}.{unknown}"), message);
        }
        let Some(transport) = self.transport(dialect, key, entry) else {
            return;
        };
        let mut config = ServerConfig::new(name, transport);
        config.include = self.texts(key, entry, "includeTools");
        config.exclude = self.texts(key, entry, "excludeTools");
        if entry.get("disabled") == Some(&Value::Bool(true)) {
            config.enabled = false;
        }
        if entry.get("trust") == Some(&Value::Bool(true)) {
            config.trust = Trust::Annotations;
        }
        if let Some(value) = entry.get("timeout") {
            if let Some(millis) = value.as_u64().filter(|millis| *millis > 0) {
                config.timeout = Duration::from_millis(millis);
            } else {
                let message = "this has to be a number of milliseconds; the default is used";
                self.warning(&format!("{key}.timeout"), message.to_owned());
            }
        }
        self.warn_of_inputs(key, entry);
        if dialect == Dialect::VsCode && entry.contains_key("envFile") {
            let message =
                "files of variables are not read here: put what the server needs into `env`";
            self.warning(&format!("{key}.envFile"), message.to_owned());
        }
        if dialect != Dialect::Gemini {
            self.warn_of_dollars(key, &config);
        }
        self.servers.push(config);
    }

    fn transport(
        &mut self,
        dialect: Dialect,
        key: &str,
        entry: &Map<String, Value>,
    ) -> Option<Transport> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let url = text("httpUrl").or_else(|| text("url"));
        let only_events = "this server speaks the old HTTP+SSE transport, which is not spoken here; \
                           most servers offer streamable HTTP at another address (often `/mcp`)";
        let is_event_stream = match text("type") {
            Some("sse") => true,
            Some("http" | "streamable-http" | "streamableHttp" | "stdio") => false,
            Some(other) => {
                let message = format!("`{other}` is not a type; there are `stdio` and `http`");
                self.error(&format!("{key}.type"), message);
                return None;
            }
            // For Gemini CLI, `url` alone is the old transport.
            None => {
                dialect == Dialect::Gemini && text("httpUrl").is_none() && text("command").is_none()
            }
        };
        if let Some(url) = url.filter(|_| text("command").is_none() || text("type") == Some("http"))
        {
            if is_event_stream {
                let place = if text("type").is_some() { "type" } else { "url" };
                self.error(&format!("{key}.{place}"), only_events.to_owned());
                return None;
            }
            let headers = self.map(key, entry, "headers");
            return Some(Transport::Http { url: url.to_owned(), headers });
        }
        let Some(command) = text("command").filter(|command| !command.is_empty()) else {
            let what = match text("type") {
                Some("http" | "sse" | "streamable-http" | "streamableHttp") => "`url` is missing",
                _ => "there is neither a `command` nor a `url`",
            };
            self.error(key, what.to_owned());
            return None;
        };
        Some(Transport::Program {
            command: command.to_owned(),
            args: self.texts(key, entry, "args"),
            env: self.map(key, entry, "env"),
            cwd: text("cwd").map(Into::into),
        })
    }

    fn texts(&mut self, key: &str, entry: &Map<String, Value>, name: &str) -> Vec<String> {
        let Some(value) = entry.get(name) else {
            return Vec::new();
        };
        let texts: Option<Vec<String>> = value
            .as_array()
            .and_then(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        texts.unwrap_or_else(|| {
            self.warning(&format!("{key}.{name}"), "this has to be a list of texts".to_owned());
            Vec::new()
        })
    }

    fn map(
        &mut self,
        key: &str,
        entry: &Map<String, Value>,
        name: &str,
    ) -> BTreeMap<String, String> {
        let mut read = BTreeMap::new();
        let Some(value) = entry.get(name).filter(|value| !value.is_null()) else {
            return read;
        };
        let Some(map) = value.as_object() else {
            self.warning(&format!("{key}.{name}"), "this has to be an object of texts".to_owned());
            return read;
        };
        for (own, value) in map {
            let text = match value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Bool(word) => Some(word.to_string()),
                _ => None,
            };
            match text {
                Some(text) => drop(read.insert(own.clone(), text)),
                None => {
                    self.warning(
                        &format!("{key}.{name}.{own}"),
                        "this has to be a text".to_owned(),
                    );
                }
            }
        }
        read
    }

    /// Values that VS Code would ask for would be sent as they are.
    fn warn_of_inputs(&mut self, key: &str, entry: &Map<String, Value>) {
        let asks = |value: &Value| value.to_string().contains("${input:");
        for (name, _) in entry.iter().filter(|(_, value)| asks(value)) {
            let message =
                "`${input:…}` is not filled in here: write `${NAME}` and set the variable";
            self.warning(&format!("{key}.{name}"), message.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
