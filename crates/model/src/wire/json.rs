//! What the wires share when they write and read JSON.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Complaint;

/// How much of something unreadable is quoted.
const QUOTE_CHARS: usize = 200;

/// How much of a provider's own words is kept.
const MESSAGE_CHARS: usize = 500;

/// How deep arguments may be nested, as far as they are kept as JSON: no tool takes more.
const DEEPEST: usize = 64;

/// Writes a body. The bodies have string keys only and serialise nothing that can fail, so there is
/// always one.
pub(super) fn bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

/// Reads an event. What cannot be understood is quoted, as is the reason, which may quote in turn.
pub(super) fn event<T: DeserializeOwned>(data: &str) -> Result<T, Complaint> {
    serde_json::from_str(data).map_err(|error| {
        let reason = quote(&error.to_string());
        Complaint::malformed(format!("an event cannot be read ({reason}): {}", quote(data)))
    })
}

/// Quotes what a provider sent and nobody understands.
pub(super) fn quote(text: &str) -> String {
    cut(text, QUOTE_CHARS)
}

/// Keeps a provider's own words, as far as they are worth reading.
pub(super) fn words(text: &str) -> String {
    cut(text.trim(), MESSAGE_CHARS)
}

/// Returns what a body says that is not the provider's JSON: the title of a proxy's page, or else its
/// text; the first line of anything else. An empty body says nothing.
pub(crate) fn gist(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if text.starts_with('<') {
        return quote(&title(text).unwrap_or_else(|| without_tags(text)));
    }
    quote(text.lines().next().unwrap_or_default().trim_end())
}

fn title(page: &str) -> Option<String> {
    // Keeps every byte where it is.
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let length = lower.get(start..)?.find("</title>")?;
    let title = page.get(start..start + length)?.trim();
    (!title.is_empty()).then(|| title.to_owned())
}

fn without_tags(page: &str) -> String {
    let texts = page.split('<').filter_map(|piece| Some(piece.split_once('>')?.1));
    let words = texts.flat_map(str::split_whitespace);
    words.collect::<Vec<_>>().join(" ")
}

fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Reads the arguments of a call. Nothing means none; what is not JSON, or nested too deep, is kept as it
/// is, so that the tool's validation can tell the model about it.
pub(super) fn arguments(raw: &str) -> Value {
    if raw.trim().is_empty() {
        return Value::Object(Map::new());
    }
    match serde_json::from_str(raw) {
        Ok(value) if depth(&value) <= DEEPEST => value,
        _ => Value::String(raw.to_owned()),
    }
}

/// Keeps arguments that came as JSON. Those that are nested too deep become their own text, since
/// whatever holds them would be too deep to be read back from a file.
pub(super) fn shallow(arguments: Value) -> Value {
    if depth(&arguments) <= DEEPEST { arguments } else { Value::String(arguments.to_string()) }
}

/// Returns how many lists and objects are inside each other. What was read is never deep enough for this
/// to be a danger.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns arguments as the object that providers insist on: those of a call that was not understood
/// are wrapped.
pub(super) fn object(arguments: &Value) -> Cow<'_, Value> {
    match arguments {
        Value::Object(_) => Cow::Borrowed(arguments),
        Value::Null => Cow::Owned(Value::Object(Map::new())),
        other => {
            Cow::Owned(Value::Object(Map::from_iter([("arguments".to_owned(), other.clone())])))
        }
    }
}

/// Writes a link as text.
pub(super) fn link<'a>(uri: &'a str, title: Option<&str>) -> Cow<'a, str> {
    match title {
        Some(title) => Cow::Owned(format!("{title}: {uri}")),
        None => Cow::Borrowed(uri),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_read_and_written_back() {
        for (raw, read, written) in [
            ("", json!({}), json!({})),
            (" \n", json!({}), json!({})),
            (r#"{"b":1,"a":2}"#, json!({ "b": 1, "a": 2 }), json!({ "b": 1, "a": 2 })),
            ("null", Value::Null, json!({})),
            ("[1]", json!([1]), json!({ "arguments": [1] })),
            (r#"{"path":"x"#, json!(r#"{"path":"x"#), json!({ "arguments": r#"{"path":"x"# })),
        ] {
            let value = arguments(raw);
            assert_eq!(value, read, "{raw}");
            assert_eq!(*object(&value), written, "{raw}");
        }
    }

    #[test]
    fn arguments_that_are_nested_too_deep_are_kept_as_text() {
        for (levels, is_text) in [(64, false), (65, true), (127, true), (100_000, true)] {
            let raw = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
            let value = arguments(&raw);
            assert_eq!(value.as_str(), is_text.then_some(raw.as_str()), "{levels}");
            if let Ok(read) = serde_json::from_str::<Value>(&raw) {
                assert_eq!(shallow(read), value, "{levels}");
            }
        }
    }

    #[test]
    fn quotes_are_bounded_and_whole_characters() {
        let long = "ä".repeat(1000);
        assert_eq!(quote(&long), format!("{}…", "ä".repeat(200)));
        assert_eq!(words(&long).chars().count(), 501);
        assert_eq!(quote("short"), "short");
    }

    #[test]
    fn a_page_is_known_by_its_title() {
        for (body, gist_of_it) in [
            ("<html>\n<head><Title>502 Bad Gateway</TITLE></head></html>", "502 Bad Gateway"),
            ("<html><body class='x'><h1>Please</h1>\n log in</body></html>", "Please log in"),
            ("<html><title></title><p>é</p>", "é"),
            ("\n upstream is gone\nmore", "upstream is gone"),
            (" \n", ""),
            ("<", ""),
        ] {
            assert_eq!(gist(body.as_bytes()), gist_of_it, "{body}");
        }
        assert_eq!(gist(&[0xff, b'x']), "\u{fffd}x");
    }
}
