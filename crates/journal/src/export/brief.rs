//! Calls and what came of them in a few words.
//!
//! What is public here chooses what to tell and leaves to others how to show it. It is as it was said: whoever
//! shows it makes it harmless.

use convoke_core::{Display, DisplayFormat, Part};
use serde_json::{Map, Value};

use super::amounts::size;
use super::shorten::beginning;
use super::visible::visible_line;
use crate::timeline::{Call, CallState};

/// How many letters a remark has at most.
const REMARK: usize = 120;
/// No argument is looked at any further.
const LONGEST: usize = 480;
/// How many letters a result has that is shown itself and not described.
const RESULT: usize = 60;

/// The arguments that say most about a call, most telling first.
const TELLING: &[&str] = &[
    "command",
    "pattern",
    "query",
    "url",
    "agent_name",
    "source",
    "path",
    "file_path",
    "name",
    "key",
    "expression",
    "question",
    "prompt",
    "task",
];
/// The arguments that say where: worth a second place.
const PLACES: &[&str] = &["path", "destination", "directory", "working_directory"];

/// Returns the beginning of a text, on one line.
pub(super) fn one_line(text: &str, letters: usize) -> String {
    // Spaces that are joined take letters too; four times as many are enough.
    let bounded: String = text.chars().take(letters.saturating_mul(4)).collect();
    let rest = if bounded.len() < text.len() { "…" } else { "" };
    beginning(&(visible_line(&bounded) + rest), letters)
}

/// Returns what a call is about: `README.md`, `cargo test`, `TODO src`.
pub(super) fn arguments(arguments: &Value) -> String {
    let About { what, place } = about(arguments);
    match place {
        Some(place) => one_line(&format!("{what} · {place}"), REMARK),
        None => one_line(&what, REMARK),
    }
}

/// What a call is about: the most telling of its arguments, and perhaps where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// What it is about; empty, if none of its arguments tells.
    pub what: String,
    /// Where, if that is another argument.
    pub place: Option<String>,
}

/// Finds out what a call is about. Long texts are cut.
pub fn about(arguments: &Value) -> About {
    let Value::Object(fields) = arguments else {
        let what = if arguments.is_null() { String::new() } else { arguments.to_string() };
        return About { what: what.chars().take(LONGEST).collect(), place: None };
    };
    let told = TELLING.iter().copied().find(|name| scalar(fields, name).is_some());
    let any = || fields.keys().map(String::as_str).find(|name| scalar(fields, name).is_some());
    let Some(first) = told.or_else(any) else { return About::default() };
    let second = PLACES.iter().filter(|name| **name != first && first != "file_path");
    About {
        what: scalar(fields, first).unwrap_or_default(),
        place: second.copied().find_map(|name| scalar(fields, name)),
    }
}

fn scalar(fields: &Map<String, Value>, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(text.chars().take(LONGEST).collect()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns what came of a call: why it failed, a short result itself, or how much there is of a long one.
pub(super) fn result(call: &Call<'_>) -> String {
    match &call.state {
        CallState::Failed(error) | CallState::Denied(error) => one_line(&error.message, REMARK),
        CallState::Completed(_) => completed(call.content, call.display),
        CallState::Waiting => "waits for somebody to allow it".to_owned(),
        CallState::Deferred(reason) => one_line(reason, REMARK),
        CallState::Running => match call.fraction {
            Some(fraction) => format!("{:.0} % done", fraction * 100.0),
            None => String::new(),
        },
        CallState::Requested | CallState::Interrupted => String::new(),
    }
}

fn completed(content: &[Part], display: Option<&Display>) -> String {
    if let Some(Display { format: DisplayFormat::Diff, text }) = display {
        let Changes { added, removed } = changes(text);
        return format!("+{added} −{removed}");
    }
    let mut texts = content.iter().filter_map(Part::as_text).filter(|text| !text.trim().is_empty());
    let Some(first) = texts.next() else { return String::new() };
    match first.trim_end().lines().count() {
        1 if first.trim().chars().nth(RESULT).is_none() => one_line(first, RESULT),
        1 => size(first.len()),
        lines => format!("{lines} lines"),
    }
}

/// How many lines a change touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changes {
    /// How many it adds.
    pub added: usize,
    /// How many it removes.
    pub removed: usize,
}

/// Counts the lines that a unified diff adds and removes.
pub fn changes(diff: &str) -> Changes {
    let count = |sign: char, head: &str| {
        diff.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head)).count()
    };
    Changes { added: count('+', "+++"), removed: count('-', "---") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_known_by_its_most_telling_argument() {
        for (params, shown) in [
            (json!({ "path": "README.md", "limit": 20 }), "README.md"),
            (json!({ "command": "cargo test\n  --all" }), "cargo test --all"),
            (json!({ "pattern": "fn main", "path": "src" }), "fn main · src"),
            (json!({ "zeta": [1], "number": 5 }), "5"),
            (json!({ "deep": { "path": "x" } }), ""),
            (Value::Null, ""),
            (json!([1, 2]), "[1,2]"),
        ] {
            assert_eq!(arguments(&params), shown, "{params}");
        }
    }

    #[test]
    fn results_are_short_or_counted() {
        let text = |text: &str| completed(&[Part::text(text)], None);
        assert_eq!([text("42\n"), text("a\nb\nc\n"), text("")], ["42", "3 lines", ""]);
        assert_eq!(text(&"x".repeat(5000)), "4 KiB");
        let diff = "--- a\n+++ b\n@@ -1 +1,2 @@\n-old\n+new\n+more\n".to_owned();
        let diff = Display { format: DisplayFormat::Diff, text: diff };
        assert_eq!(completed(&[], Some(&diff)), "+2 −1");
        assert!(one_line(&" a\n".repeat(100_000), 10).ends_with('…'));
    }
}
