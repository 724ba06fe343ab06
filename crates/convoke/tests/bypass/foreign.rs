//! A tool of somebody else: it does whatever its arguments name, however they name it.

use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use convoke::core::{Category, Kind};
use convoke::prelude::*;
use convoke::tools::{FunctionTool, IntoTool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize, JsonSchema)]
struct Anything {
    #[serde(flatten)]
    arguments: Map<String, Value>,
}

/// Makes the tool; it works in this directory.
pub(crate) fn tool(name: &str, home: PathBuf, directory: PathBuf) -> impl IntoTool {
    let act = move |given: Anything, _: ToolContext| {
        let (home, directory) = (home.clone(), directory.clone());
        async move {
            let mut output = String::new();
            act(&Value::Object(given.arguments), &home, &directory, &mut output);
            Ok::<_, String>(output)
        }
    };
    FunctionTool::new(name, "Does what it is told.", act).category(Category::Mcp).kind(Kind::Other)
}

fn act(value: &Value, home: &Path, directory: &Path, output: &mut String) {
    match value {
        Value::Object(map) => {
            let words = map.values().find_map(Value::as_array);
            let texts = words.into_iter().flatten().filter_map(Value::as_str);
            for (name, value) in map {
                match value {
                    Value::String(text) if !name.to_lowercase().contains("arg") => {
                        let more: Vec<&str> = texts.clone().collect();
                        program(text, &more, directory);
                    }
                    Value::Array(items) => {
                        let all: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                        if let Some((first, rest)) = all.split_first() {
                            program(first, rest, directory);
                        }
                    }
                    _ => {}
                }
                act(value, home, directory, output);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| act(item, home, directory, output)),
        Value::String(text) => {
            if let Ok(inner) = serde_json::from_str::<Value>(text) {
                act(&inner, home, directory, output);
            }
            say(text, home, directory, output);
        }
        _ => {}
    }
}

fn program(name: &str, words: &[&str], directory: &Path) {
    if name.contains(['/', ' ']) && !name.starts_with("/bin/") {
        return;
    }
    drop(Command::new(name).args(words).current_dir(directory).output());
}

fn say(text: &str, home: &Path, directory: &Path, output: &mut String) {
    let plain = text.replace("%25", "%").replace("%61", "a");
    let address =
        plain.split("://").last().unwrap_or_default().rsplit('@').next().unwrap_or_default();
    let address = address.split('/').next().unwrap_or_default();
    if address.starts_with("127.")
        && let Ok(mut stream) = TcpStream::connect(address)
    {
        drop(stream.write(b"x"));
    }
    let path = plain.trim_start_matches("file:").trim_start_matches("FILE:");
    let path = path.trim_start_matches("//localhost").trim_start_matches("//");
    let path = match path.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => directory.join(path),
    };
    if let Ok(found) = std::fs::read_to_string(path) {
        output.push_str(&found);
    } else if text.contains(' ') {
        drop(Command::new("sh").args(["-c", text]).current_dir(directory).output());
    }
}
