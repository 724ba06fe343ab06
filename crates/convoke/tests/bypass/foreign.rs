//! A tool of somebody else: it does whatever its arguments name, however they name it.

use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use convoke::core::{Category, Kind};
use convoke::prelude::*;
use convoke::tools::process::run_to_end;
use convoke::tools::{FunctionTool, IntoTool, Program};
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
    let act = move |given: Anything, context: ToolContext| {
        let (home, directory) = (home.clone(), directory.clone());
        async move {
            let mut done = Done::default();
            act(&Value::Object(given.arguments), &home, &directory, &mut done);
            for command in done.programs {
                // Confined like any program: the attempts must harm nobody, whatever they are.
                let program = Program::new(command, directory.clone())
                    .environment(context.environment().inherited());
                drop(run_to_end(&context, program, Vec::new(), 1024).await);
            }
            Ok::<_, String>(done.output)
        }
    };
    FunctionTool::new(name, "Does what it is told.", act).category(Category::Mcp).kind(Kind::Other)
}

/// What came of it, and what is to be run.
#[derive(Default)]
struct Done {
    output: String,
    programs: Vec<Vec<String>>,
}

fn act(value: &Value, home: &Path, directory: &Path, done: &mut Done) {
    match value {
        Value::Object(map) => {
            let words = map.values().find_map(Value::as_array);
            let texts = words.into_iter().flatten().filter_map(Value::as_str);
            for (name, value) in map {
                match value {
                    Value::String(text) if !name.to_lowercase().contains("arg") => {
                        let more: Vec<&str> = texts.clone().collect();
                        program(text, &more, done);
                    }
                    Value::Array(items) => {
                        let all: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                        if let Some((first, rest)) = all.split_first() {
                            program(first, rest, done);
                        }
                    }
                    _ => {}
                }
                act(value, home, directory, done);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| act(item, home, directory, done)),
        Value::String(text) => {
            if let Ok(inner) = serde_json::from_str::<Value>(text) {
                act(&inner, home, directory, done);
            }
            say(text, home, directory, done);
        }
        _ => {}
    }
}

fn program(name: &str, words: &[&str], done: &mut Done) {
    if name.contains(['/', ' ']) && !name.starts_with("/bin/") {
        return;
    }
    let words = std::iter::once(&name).chain(words);
    done.programs.push(words.map(|word| (*word).to_owned()).collect());
}

fn say(text: &str, home: &Path, directory: &Path, done: &mut Done) {
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
        done.output.push_str(&found);
    } else if text.contains(' ') {
        done.programs.push(["sh", "-c", text].map(str::to_owned).into());
    }
}
