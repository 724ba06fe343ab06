//! Servers as users have configured them elsewhere.
//!
//! The text is JSON, comments and all, in one of four dialects, told apart by what is in it. Nothing is
//! expanded: `${VAR}` and `${VAR:-x}` stay as they are, for whoever knows the environment, and so do
//! [`WORKSPACE_FOLDER`] and its kin, which editors know. `${env:VAR}`, as editors write it, becomes `${VAR}`. Every problem names the key it is about;
//! a server with a problem is left out only if it could not be used, and the others are read.

mod habits;
mod login;
mod relaxed;
mod spelling;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use convoke_core::nearest::{did_you_mean, nearest};
use serde_json::{Map, Value};

pub use self::login::ImportedLogin;
use self::relaxed::strict;
use self::spelling::{Found, WHAT_IS_READ, common, is_of_events, servers_of};
use super::address::{address_problem, plain_address};
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
    /// VS Code: `servers`, or `mcp.servers`, with `type`, and `inputs`.
    VsCode,
    /// `OpenCode`: `mcp` with `type: local` or `remote`, and `environment`.
    OpenCode,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The servers that can be used, by name.
    pub servers: Vec<ServerConfig>,
    /// How they are logged in to, where that is said, by their names.
    pub logins: BTreeMap<String, ImportedLogin>,
    /// The names of those that cannot be.
    pub left_out: Vec<String>,
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
    let Some(Found { dialect, place, servers }) = servers_of(&value) else {
        let key = ["mcpServers", "servers"].into_iter().find(|key| value.get(key).is_some());
        match key {
            Some(key) => read.error(key, "this has to be an object, a key a server".to_owned()),
            None if !read.servers.is_empty() => {}
            None => read.error("", WHAT_IS_READ.to_owned()),
        }
        return read;
    };
    let inputs = value.get("inputs").or_else(|| value.pointer("/mcp/inputs"));
    if dialect == Dialect::VsCode && inputs.is_some() {
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

/// Returns a value as a text, where it is one or can be nothing else.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(word) => Some(word.to_string()),
        _ => None,
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
        Dialect::Common | Dialect::OpenCode => &[
            "type", "command", "args", "env", "url", "headers", "cwd", "disabled", "timeout",
            "oauth",
        ],
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
            "oauth",
        ],
        Dialect::VsCode => &[
            "type", "command", "args", "env", "envFile", "cwd", "url", "headers", "gallery",
            "version", "oauth",
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
            self.server(dialect, &own, &key, &common(dialect, entry));
        }
    }

    fn server(&mut self, dialect: Dialect, name: &str, key: &str, entry: &Map<String, Value>) {
        for unknown in entry.keys().filter(|own| !known_keys(dialect).contains(&own.as_str())) {
            let message = if let Some(why) = habits::left_out(unknown) {
                format!("this was left out: {why}")
            } else {
                let close = nearest(unknown, known_keys(dialect).iter().copied());
                format!("this key is not known and was left out{}", did_you_mean(&close))
            };
            self.warning(&format!("{key}.{unknown}"), message);
        }
        let Some(transport) = self.transport(dialect, key, entry) else {
            return self.left_out.push(name.to_owned());
        };
        let is_remote = matches!(transport, Transport::Http { .. });
        let mut config = ServerConfig::new(name, transport);
        let more = "more of its tools would be offered";
        let include = self.texts(key, entry, "includeTools", more);
        let exclude = self.texts(key, entry, "excludeTools", more);
        let (Some(include), Some(exclude)) = (include, exclude) else {
            return self.left_out.push(name.to_owned());
        };
        (config.include, config.exclude) = (include, exclude);
        if entry.get("disabled") == Some(&Value::Bool(true)) {
            config.enabled = false;
        }
        if entry.get("trust") == Some(&Value::Bool(true)) {
            config.trust = Trust::Annotations;
        }
        if let Some(timeout) = self.timeout(key, entry) {
            config.timeout = timeout;
        }
        if is_remote {
            self.login(name, key, entry);
        } else if entry.contains_key("oauth") {
            let message = "this is for servers at an address, and was left out".to_owned();
            self.warning(&format!("{key}.oauth"), message);
        }
        let asked = "`${input:…}` is not filled in here: write `${NAME}` and set the variable";
        self.warn_of(key, entry, "${input:", asked);
        if dialect == Dialect::OpenCode {
            let read = "`{file:…}` is not read here: write `${NAME}` and set the variable";
            self.warn_of(key, entry, "{file:", read);
        }
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

    /// Reads how long a call may take: milliseconds, but for those who write seconds.
    fn timeout(&mut self, key: &str, entry: &Map<String, Value>) -> Option<Duration> {
        /// Nobody means a shorter time.
        const SHORTEST: u64 = 1_000;
        /// Those who write seconds take no more than an hour.
        const MOST_SECONDS: u64 = 3_600;
        let value = entry.get("timeout")?;
        let key = format!("{key}.timeout");
        let Some(number) = value.as_u64().filter(|number| *number > 0) else {
            let message = "this has to be a number of milliseconds; the default is used";
            self.warning(&key, message.to_owned());
            return None;
        };
        if habits::writes_seconds(entry) && number <= MOST_SECONDS {
            self.warning(&key, format!("{number} is read as seconds, as Cline writes it"));
            return Some(Duration::from_secs(number));
        }
        if number < SHORTEST {
            let message = format!(
                "{number} is read as milliseconds, which is very short; if seconds are meant, write {number}000"
            );
            self.warning(&key, message);
        }
        Some(Duration::from_millis(number))
    }

    fn transport(
        &mut self,
        dialect: Dialect,
        key: &str,
        entry: &Map<String, Value>,
    ) -> Option<Transport> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let place = if text("httpUrl").is_some() { "httpUrl" } else { "url" };
        let url = text(place);
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
            None => text("httpUrl").is_none() && url.is_some_and(is_of_events),
        };
        // Gemini CLI takes an address where there is one.
        let is_remote = text("command").is_none()
            || text("type").map_or(dialect == Dialect::Gemini, |kind| kind != "stdio");
        if url.is_some() && text("command").is_some() {
            if text("type").is_none() && dialect != Dialect::Gemini {
                let message = "it has both a `command` and a `url`: take one out, or say by `type` which counts \
                               (`stdio` or `http`)";
                self.error(key, message.to_owned());
                return None;
            }
            let (counts, other) = if is_remote { ("url", "command") } else { ("command", "url") };
            let message = format!("the `{counts}` counts, and the `{other}` was left out");
            self.warning(key, message);
        }
        if let Some(url) = url.filter(|_| is_remote) {
            if let Some(why) = address_problem(url) {
                let message = format!("this is no address of a server: {why}");
                self.error(&format!("{key}.{place}"), message);
                return None;
            }
            if is_event_stream {
                let place = if text("type").is_some() { "type" } else { "url" };
                self.error(&format!("{key}.{place}"), only_events.to_owned());
                return None;
            }
            if dialect == Dialect::Gemini && place == "url" && text("type").is_none() {
                let message = "this is taken for an address of streamable HTTP; Gemini CLI would speak the old \
                               HTTP+SSE transport there";
                self.warning(&format!("{key}.url"), message.to_owned());
            }
            let headers = self.map(key, entry, "headers");
            return Some(Transport::Http { url: plain_address(url), headers });
        }
        if entry.get("command").is_some_and(|command| !command.is_string() && !command.is_null()) {
            let message =
                "this has to be a text, or a list of texts: the program and its arguments";
            self.error(&format!("{key}.command"), message.to_owned());
            return None;
        }
        let Some(command) = text("command").filter(|command| !command.trim().is_empty()) else {
            let what = match text("type") {
                Some("http" | "sse" | "streamable-http" | "streamableHttp") => "`url` is missing",
                _ => "there is neither a `command` nor a `url`",
            };
            self.error(key, what.to_owned());
            return None;
        };
        Some(Transport::Program {
            command: command.to_owned(),
            args: self.texts(key, entry, "args", "another command would be run")?,
            env: self.map(key, entry, "env"),
            cwd: text("cwd").map(Into::into),
        })
    }

    /// Reads a list of texts. Where there is something else, the server is not used: without what it says, `otherwise`.
    fn texts(
        &mut self,
        key: &str,
        entry: &Map<String, Value>,
        name: &str,
        otherwise: &str,
    ) -> Option<Vec<String>> {
        let Some(value) = entry.get(name).filter(|value| !value.is_null()) else {
            return Some(Vec::new());
        };
        let texts: Option<Vec<String>> =
            value.as_array().and_then(|items| items.iter().map(written).collect());
        if texts.is_none() {
            let message = format!("this has to be a list of texts; without it, {otherwise}");
            self.error(&format!("{key}.{name}"), message);
        }
        texts
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
            match written(value) {
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

    /// Values that VS Code would ask for, or that `OpenCode` would read, would be sent as they are.
    fn warn_of(&mut self, key: &str, entry: &Map<String, Value>, sign: &str, message: &str) {
        for (name, _) in entry.iter().filter(|(_, value)| value.to_string().contains(sign)) {
            self.warning(&format!("{key}.{name}"), message.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
