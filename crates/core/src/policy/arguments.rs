//! Commands, paths and hosts that the arguments of a tool name, at any depth.
//!
//! Convoke's own tools state which of their arguments are what. Foreign tools do not, so a text that is
//! named or looks like a command, a path or a host is taken for one, and every other text and every key
//! for a [mention](super::mention). A guess can only forbid: it never makes a rule allow a call.

use serde_json::{Map, Value};

use super::touch::{Bases, Reach, host_in, spellings};

/// How deep arguments are looked into.
const MAX_DEPTH: usize = 16;

/// Names of arguments that hold a command.
const COMMANDS: &[&str] = &["command", "cmd", "commandline", "shellcommand", "bash", "sh"];
/// Names of arguments that may hold a command, or something else.
const SCRIPTS: &[&str] =
    &["script", "shell", "exec", "execute", "run", "program", "executable", "argv", "line"];
/// Names of lists of commands.
const LISTS: &[&str] = &["commands", "cmds", "commandlines", "lines", "scripts"];
/// Names of the words after a program.
const WORDS: &[&str] = &["args", "arguments", "argv", "parameters", "params"];
/// How the names of arguments end that are paths or addresses.
const PATHS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filenames",
    "uri",
    "uris",
    "url",
    "urls",
    "dir",
    "dirs",
    "directory",
    "directories",
    "folder",
    "root",
    "roots",
    "cwd",
    "location",
];
/// How the names of arguments end that are hosts.
const HOSTS: &[&str] = &["host", "hosts", "hostname", "domain", "server", "endpoint", "address"];

/// A command that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) text: Text,
    pub(super) certainty: Certainty,
}

/// How a command is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// As a line for a shell.
    Line(String),
    /// As a program and its arguments.
    Words(Vec<String>),
}

/// How sure it is that it is a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// It is one, and has to be allowed.
    Sure,
    /// It may be one: it can only be forbidden.
    Guess,
}

/// What was found in arguments.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) commands: Vec<Command>,
    pub(super) paths: Vec<String>,
    pub(super) hosts: Vec<Reach>,
    /// Every key and every text.
    pub(super) texts: Vec<String>,
    /// Lists of texts, which may be a program with its arguments.
    pub(super) lists: Vec<Vec<String>>,
    /// Whether there is more than was looked at.
    pub(super) more: bool,
}

/// Looks for everything that arguments may name. Paths and hosts are only `guessed` where asked for.
pub(super) fn search(arguments: &Value, guessed: bool) -> Named {
    let mut named = Named::default();
    named.value("", arguments, guessed, 0);
    named
}

impl Named {
    fn value(&mut self, name: &str, value: &Value, guessed: bool, depth: usize) {
        if depth > MAX_DEPTH {
            self.more = true;
            return;
        }
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    if guessed {
                        self.texts.push(key.clone());
                    }
                    let name = plain_name(key);
                    if !self.command(&name, value, map) {
                        self.value(&name, value, guessed, depth + 1);
                    } else if value.is_object() || value.is_array() {
                        self.nested(value, guessed, depth + 1);
                    }
                }
            }
            Value::Array(items) => {
                if guessed {
                    self.lists.push(strings(value));
                }
                for item in items {
                    self.value(name, item, guessed, depth + 1);
                }
            }
            Value::String(text) => {
                // Arguments within arguments, as text.
                if text.starts_with(['{', '['])
                    && let Ok(inner) = serde_json::from_str::<Value>(text)
                {
                    self.value(name, &inner, guessed, depth + 1);
                }
                if guessed {
                    self.text(name, text);
                }
            }
            // An address may be written as a number.
            Value::Number(number) if guessed => self.texts.push(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Looks into what stands in a command besides its words.
    fn nested(&mut self, value: &Value, guessed: bool, depth: usize) {
        let inner =
            value.as_array().into_iter().flatten().chain(value.is_object().then_some(value));
        for value in inner.filter(|value| value.is_object() || value.is_array()) {
            self.value("", value, guessed, depth);
        }
    }

    /// Takes an argument that is a command; tells whether it is one.
    fn command(&mut self, name: &str, value: &Value, beside: &Map<String, Value>) -> bool {
        let certainty = match name {
            name if COMMANDS.contains(&name) => Certainty::Sure,
            name if SCRIPTS.contains(&name) => Certainty::Guess,
            name if LISTS.contains(&name) => {
                for line in strings(value) {
                    self.push(Text::Line(line), Certainty::Sure);
                }
                return true;
            }
            _ => return false,
        };
        match value {
            Value::String(text) => {
                let words = beside.iter().find(|(name, _)| WORDS.contains(&&*plain_name(name)));
                let words = words.map(|(_, words)| strings(words)).unwrap_or_default();
                let alone = words.is_empty() || text.contains(char::is_whitespace);
                let plain = if alone { certainty } else { Certainty::Guess };
                if !words.is_empty() {
                    let all = std::iter::once(text.clone()).chain(words).collect();
                    self.push(Text::Words(all), certainty);
                }
                self.push(Text::Line(text.clone()), plain);
                true
            }
            Value::Array(_) => {
                let words = strings(value);
                // Each may also be a line of its own.
                for line in words.iter().filter(|word| word.contains(char::is_whitespace)) {
                    self.push(Text::Line(line.clone()), Certainty::Guess);
                }
                if !words.is_empty() {
                    self.push(Text::Words(words), certainty);
                }
                true
            }
            _ => false,
        }
    }

    fn push(&mut self, text: Text, certainty: Certainty) {
        match &text {
            Text::Line(line) => self.texts.push(line.clone()),
            Text::Words(words) => {
                self.texts.extend(words.iter().cloned());
                self.lists.push(words.clone());
            }
        }
        self.commands.push(Command { text, certainty });
    }

    /// Takes a text that may be a path or an address.
    fn text(&mut self, name: &str, text: &str) {
        self.texts.push(text.to_owned());
        let is_host = HOSTS.iter().any(|end| name.ends_with(end)) || text.contains("://");
        self.hosts.extend(is_host.then(|| host_in(text)).flatten());
        let named = PATHS.iter().any(|end| name.ends_with(end));
        let looks = text.starts_with(['/', '~', '.', '\\'])
            || (text.contains(['/', '\\']) && !text.contains(char::is_whitespace));
        if named || looks || is_file_url(text) {
            let spelled = spellings(text.trim(), &Bases::default());
            let local = spelled.iter().filter_map(|text| local_path(text)).collect::<Vec<_>>();
            for path in spelled.into_iter().chain(local) {
                if !self.paths.contains(&path) {
                    self.paths.push(path);
                }
            }
        }
    }
}

/// Returns the name of an argument without what people write differently.
fn plain_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}

fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn is_file_url(text: &str) -> bool {
    text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

/// Returns the path of a URL that leads to a file of this machine.
fn local_path(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once(':')?;
    let remote =
        ["http", "https", "ws", "wss"].iter().any(|known| known.eq_ignore_ascii_case(scheme));
    if remote || scheme.contains('/') {
        return None;
    }
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let path = match rest.strip_prefix("//") {
        Some(rest) if rest.starts_with('/') => rest,
        // The name of a host, or the first name of a path.
        Some(rest) => rest.find('/').and_then(|at| rest.get(at..))?,
        None => rest,
    };
    path.starts_with('/').then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(arguments: &Value) -> Vec<String> {
        let shown = |command: Command| {
            let mark = if command.certainty == Certainty::Sure { "" } else { "?" };
            match command.text {
                Text::Line(line) => format!("{line}{mark}"),
                Text::Words(words) => format!("[{}]{mark}", words.join(",")),
            }
        };
        search(arguments, true).commands.into_iter().map(shown).collect()
    }

    #[test]
    fn commands_are_found_at_any_depth_and_by_other_names() {
        for (arguments, expected) in [
            (json!({ "command": "ls" }), &["ls"][..]),
            (json!({ "Command_Line": "ls" }), &["ls"]),
            (json!({ "shell-command": "ls" }), &["ls"]),
            (json!({ "script": "ls" }), &["ls?"]),
            (json!({ "command": ["rm", "x"] }), &["[rm,x]"]),
            (json!({ "command": ["bash", "-c", "rm x"] }), &["rm x?", "[bash,-c,rm x]"]),
            (json!({ "commands": ["ls", "rm x"] }), &["ls", "rm x"]),
            (json!({ "command": "rm", "args": ["x"] }), &["[rm,x]", "rm?"]),
            (json!({ "steps": [{ "run": { "cmd": "rm x" } }] }), &["rm x"]),
            (json!({ "command": { "cmd": "rm x" } }), &["rm x"]),
            (json!({ "command": [{ "cmd": "rm x" }] }), &["rm x"]),
            (json!({ "payload": "{\"cmd\": \"rm x\"}" }), &["rm x"]),
            (json!({ "title": "rm x", "n": 1 }), &[]),
        ] {
            assert_eq!(lines(&arguments), expected, "{arguments}");
        }
    }

    #[test]
    fn paths_are_found_in_every_spelling() {
        for (arguments, expected) in [
            (json!({ "path": "/a/b" }), "/a/b"),
            (json!({ "options": [{ "inputFile": "b" }] }), "b"),
            (json!({ "anything": "/a/b" }), "/a/b"),
            (json!({ "uri": "file:///a/b" }), "/a/b"),
            (json!({ "uri": "FILE://localhost/a/b" }), "/a/b"),
            (json!({ "uri": "file:/a/b" }), "/a/b"),
            (json!({ "uri": "file:///a/%62" }), "/a/b"),
            (json!({ "uri": "file:///a/%2562" }), "/a/b"),
            (json!({ "database": "sqlite:///a/b?mode=ro" }), "/a/b"),
            (json!({ "x": "..\\a\\b" }), "../a/b"),
            (json!({ "x": "[\"/a/b\"]" }), "/a/b"),
        ] {
            let found = search(&arguments, true).paths;
            assert!(found.contains(&expected.to_owned()), "{arguments}: {found:?}");
            assert_eq!(search(&arguments, false).paths, [""; 0]);
        }
        let text = json!({ "body": "and/or that is the question", "url": "https://h/etc" });
        assert_eq!(search(&text, true).paths, ["https://h/etc"]);
        let host = |text: &str| vec![Reach::Known(crate::Endpoint::parse(text).unwrap())];
        assert_eq!(search(&text, true).hosts, host("h:443"));
        let remote = json!({ "remote": { "serverHost": "Example.com" } });
        assert_eq!(search(&remote, true).hosts, host("example.com"));
    }

    #[test]
    fn every_key_and_every_text_is_kept() {
        let arguments = json!({ "a": [{ "b": "c" }], "d": 12, "e": "{\"f\":\"g\"}", "h": true });
        let found = search(&arguments, true);
        assert_eq!(found.texts, ["a", "b", "c", "d", "12", "e", "f", "g", "{\"f\":\"g\"}", "h"]);
        let found = search(&json!({ "argv": ["x", "rm", "y"], "list": ["a", "b"] }), true);
        assert!(found.lists.contains(&vec!["a".to_owned(), "b".to_owned()]), "{found:?}");
    }

    #[test]
    fn there_is_an_end_to_looking() {
        let mut deep = json!("x");
        for _ in 0..40 {
            deep = json!([deep]);
        }
        assert!(search(&deep, true).more);
        assert!(!search(&json!({ "a": [[{ "b": 1 }]] }), true).more);
    }
}
