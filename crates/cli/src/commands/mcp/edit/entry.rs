//! A server as it is written in a configuration file.

use convoke::mcp::client::{ImportedLogin, ServerConfig, Transport, Trust};

use crate::duration;

/// Words that mean something else in YAML, or did once.
const TAKEN: &[&str] =
    &["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity"];

/// Returns the keys of a server, a line each, without the dash before the first and without indentation.
pub(super) fn lines(server: &ServerConfig, login: &ImportedLogin) -> Vec<String> {
    let mut lines = vec![format!("name: {}", scalar(&server.name))];
    match &server.transport {
        Transport::Program { command, args, env, cwd } => {
            lines.push(format!("command: {}", scalar(command)));
            if !args.is_empty() {
                lines.push(format!("args: {}", sequence(args)));
            }
            lines.extend(map("env", env.iter()));
            if let Some(cwd) = cwd {
                lines.push(format!("cwd: {}", scalar(&cwd.display().to_string())));
            }
        }
        Transport::Http { url, headers } => {
            lines.push(format!("url: {}", quoted(url)));
            lines.extend(map("headers", headers.iter()));
            lines.extend(auth(login));
        }
    }
    for (key, patterns) in [("include", &server.include), ("exclude", &server.exclude)] {
        if !patterns.is_empty() {
            lines.push(format!("{key}: {}", sequence(patterns)));
        }
    }
    let usual = ServerConfig::http("", "");
    if server.timeout != usual.timeout {
        lines.push(format!("timeout: {}", duration::show(server.timeout)));
    }
    if server.start_timeout != usual.start_timeout {
        lines.push(format!("startTimeout: {}", duration::show(server.start_timeout)));
    }
    if server.trust == Trust::Annotations {
        lines.push("trust: true".to_owned());
    }
    if !server.enabled {
        lines.push("enabled: false".to_owned());
    }
    lines
}

/// Returns the keys of an item that switches off a server which is written elsewhere.
pub(super) fn switch(name: &str) -> Vec<String> {
    vec![format!("name: {}", scalar(name)), "enabled: false".to_owned()]
}

fn auth(login: &ImportedLogin) -> Vec<String> {
    let id = login.client_id.as_ref().map(|id| format!("  clientId: {}", quoted(id)));
    let port = login.redirect_port.map(|port| format!("  redirectPort: {port}"));
    let keys: Vec<String> = id.into_iter().chain(port).collect();
    if keys.is_empty() { keys } else { std::iter::once("auth:".to_owned()).chain(keys).collect() }
}

fn map<'a>(
    key: &str,
    pairs: impl ExactSizeIterator<Item = (&'a String, &'a String)>,
) -> Vec<String> {
    if pairs.len() == 0 {
        return Vec::new();
    }
    let line = |(name, value): (&String, &String)| format!("  {}: {}", scalar(name), quoted(value));
    std::iter::once(format!("{key}:")).chain(pairs.map(line)).collect()
}

fn sequence(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", quoted.join(", "))
}

/// Writes a text plainly if it can be nothing else.
fn scalar(text: &str) -> String {
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let is_plain =
        begins && text.chars().all(is_word) && !TAKEN.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { quoted(text) }
}

/// Writes a text as JSON does, which is YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the names of the variables that a text asks for and cannot do without.
pub(in crate::commands::mcp) fn variables(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        rest = from.get(2..).unwrap_or_default();
        let Some((name, after)) = rest.split_once('}').filter(|_| !before.ends_with('$')) else {
            continue;
        };
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if !name.is_empty() && name.chars().all(is_name) && !names.iter().any(|one| one == name) {
            names.push(name.to_owned());
        }
        rest = after;
    }
    names
}
