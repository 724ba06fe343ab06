//! A command line that calls a tool, for people to start from.

use convoke_core::{Permission, ToolSpec};
use serde_json::{Value, json};

use super::fields::required;

/// What parameters could be: of one tool, or of any (`*`).
const SAMPLES: &[(&str, &str, &str)] = &[
    ("base64_decode", "encoded", "aGVsbG8="),
    ("glob", "pattern", "**/*.md"),
    ("http_request", "method", "HEAD"),
    ("json_parse", "text", "{\"answer\": 42}"),
    ("json_stringify", "data", "{\"answer\": 42}"),
    ("list_files", "path", "."),
    ("set_env", "key", "GREETING"),
    ("sleep", "duration", "1"),
    ("*", "command", "git status"),
    ("*", "from", "notes.txt"),
    ("*", "key", "HOME"),
    ("*", "new_string", "after"),
    ("*", "old_string", "before"),
    ("*", "pattern", "TODO"),
    ("*", "query", "rust async"),
    ("*", "text", "hello"),
    ("*", "to", "archive/notes.txt"),
    ("*", "url", "https://example.com"),
];

/// Parameters without which a call says little, although they may be left out.
const TELLING: &[&str] = &["old_string", "new_string"];

/// Returns a command line with all parameters that have to be there, and what permits it.
pub(super) fn command_line(spec: &ToolSpec, permission: Permission) -> String {
    let mut line = format!("convoke tools call {}", spec.name);
    let required = required(&spec.parameters);
    let telling = TELLING.iter().copied().filter(|name| property(&spec.parameters, name).is_some());
    let others = telling.filter(|name| !required.contains(name));
    for name in required.iter().copied().chain(others) {
        let value = sample(spec, name, property(&spec.parameters, name));
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        line.push_str(" --arg ");
        line.push_str(&quoted(&format!("{name}={text}")));
    }
    if permission == Permission::Deny {
        line.push_str(&format!(" --allow {}", spec.kind));
    }
    line
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

fn sample(spec: &ToolSpec, name: &str, schema: Option<&Value>) -> Value {
    let mut known = SAMPLES.iter().filter(|(_, parameter, _)| *parameter == name);
    if let Some((.., text)) = known.find(|(tool, ..)| *tool == "*" || *tool == spec.name) {
        return (*text).into();
    }
    let schema = schema.unwrap_or(&Value::Null);
    let mut given = ["/examples/0", "/default", "/enum/0", "/const"].iter();
    if let Some(value) = given.find_map(|pointer| schema.pointer(pointer)) {
        return value.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([sample(spec, name, schema.get("items"))]),
        Some("object") => {
            let inner = required(schema).into_iter();
            let inner =
                inner.map(|name| (name.to_owned(), sample(spec, name, property(schema, name))));
            Value::Object(inner.collect())
        }
        // What changes a file is not shown with one that matters.
        _ if name == "path" && spec.kind.only_looks() => "README.md".into(),
        _ if name == "path" => "notes.txt".into(),
        _ => "text".into(),
    }
}

/// Quotes a word for a shell, where that is needed.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=,+@".contains(letter);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use convoke_core::Kind;

    use super::*;

    #[test]
    fn everything_required_is_there_and_quoted() {
        let mut spec = ToolSpec::new("t", "", Kind::Read);
        spec.parameters = json!({
            "type": "object",
            "required": ["command", "count", "edits", "mode"],
            "properties": {
                "command": { "type": "string" },
                "count": { "type": "integer", "minimum": 3 },
                "edits": { "type": "array", "items": {
                    "type": "object", "required": ["x"], "properties": { "x": { "type": "string" } },
                } },
                "mode": { "enum": ["fast", "slow"] },
                "other": { "type": "string" },
            },
        }).into();
        assert_eq!(
            command_line(&spec, Permission::Deny),
            "convoke tools call t --arg 'command=git status' --arg count=3 \
             --arg 'edits=[{\"x\":\"text\"}]' --arg mode=fast --allow read"
        );
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
