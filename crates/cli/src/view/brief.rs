//! Calls and their results in a few words, bounded and safe to show.
//!
//! Everything that a model or a tool said becomes one harmless line here, before it is kept or shown:
//! whoever has a text from this module may print it.

use convoke::journal::export::amounts::size;
use convoke::journal::export::brief::{About, Changes, about, changes};
use convoke_core::{Display, DisplayFormat, Part};
use serde_json::Value;

use super::amounts;
use super::look::{Look, Sign};
use crate::output::{columns, cut, harmless};

/// How long the arguments of a call are, in columns.
const ARGUMENTS: usize = 100;
/// How long a remark is, in columns.
pub(crate) const REMARK: usize = 300;
/// How long a line of several is, in columns.
pub(super) const LONGEST: usize = 2_000;
/// How long a result is that is shown itself and not described.
const RESULT: usize = 60;

/// What stands for text that was left out: these texts are made before it is known where they are shown.
const MARK: &str = "...";

/// Returns a text as one harmless line of at most `width` columns.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    // A letter takes a column or none; four times as many letters are more than enough. Spaces are joined before: they
    // hide nothing.
    let words = text.split_whitespace();
    let mut letters = words.flat_map(|word| std::iter::once(' ').chain(word.chars())).skip(1);
    let bounded: String = letters.by_ref().take(width.saturating_mul(4).max(64)).collect();
    let rest = if letters.next().is_some() { MARK } else { "" };
    cut(&(harmless(&bounded) + rest), width, MARK)
}

/// Returns a harmless text of several lines, without those beyond a limit.
pub(crate) fn some_lines(text: &str, limit: usize, look: Look) -> Vec<String> {
    let mut rest = text.lines();
    let mut lines: Vec<String> = rest
        .by_ref()
        .take(limit)
        .map(|line| cut(&harmless(&line.replace('\t', "    ")), LONGEST, MARK))
        .collect();
    match rest.count() {
        0 => {}
        1 => lines.push(format!("{} 1 more line", look.sign(Sign::More))),
        more => lines.push(format!("{} {more} more lines", look.sign(Sign::More))),
    }
    lines
}

/// Returns what a call is about: `README.md`, `cargo test`, `TODO src`.
pub(crate) fn arguments(params: &Value) -> String {
    let About { mut what, place } = about(params);
    if let Some(place) = place {
        if what.contains(char::is_whitespace) {
            what = format!("\"{what}\"");
        }
        what = format!("{what} {place}");
    }
    one_line(&what, ARGUMENTS)
}

/// Returns what came of a call: a short result itself, or how much there is of a long one.
pub(crate) fn result(content: &[Part], display: Option<&Display>) -> Option<String> {
    if let Some(Display { format: DisplayFormat::Diff, text }) = display {
        let Changes { added, removed } = changes(text);
        return Some(format!("+{added} -{removed}"));
    }
    let mut texts = content.iter().filter_map(Part::as_text).filter(|text| !text.trim().is_empty());
    let (first, more) = (texts.next()?, texts.next());
    let lines = first.trim_end().lines().count();
    match (lines, more) {
        (1, None) if columns(first.trim()) <= RESULT => Some(one_line(first, RESULT)),
        (1, None) => Some(size(first.len())),
        (lines, _) => Some(amounts::count(lines as u64, "line")),
    }
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
            (json!({ "pattern": "fn main", "path": "src" }), "\"fn main\" src"),
            (json!({ "source": "a", "destination": "b" }), "a b"),
            (json!({ "agent_name": "digger", "task": "dig" }), "digger"),
            (json!({ "zeta": [1], "number": 5 }), "5"),
            (json!({ "deep": { "path": "x" } }), ""),
            (json!({}), ""),
            (Value::Null, ""),
            (json!("just text"), "\"just text\""),
        ] {
            assert_eq!(arguments(&params), shown, "{params}");
        }
    }

    #[test]
    fn hostile_arguments_are_one_harmless_line() {
        let params = json!({ "path": format!("a\u{1b}[2J\r\n{}", "漢".repeat(100_000)) });
        let shown = arguments(&params);
        assert!(shown.starts_with("a\\u{1b}[2J 漢"), "{shown}");
        assert!(columns(&shown) <= ARGUMENTS && shown.ends_with(MARK), "{shown}");
    }

    #[test]
    fn short_results_are_shown_and_long_ones_counted() {
        let text = |text: &str| result(&[Part::text(text)], None);
        assert_eq!(text("42\n").as_deref(), Some("42"));
        assert_eq!(text("a\nb\nc\n").as_deref(), Some("3 lines"));
        assert_eq!(text(&"x".repeat(5000)).as_deref(), Some("4 KiB"));
        assert_eq!(text("  \n"), None);
        let diff = Display {
            format: DisplayFormat::Diff,
            text: "--- a\n+++ b\n@@ -1 +1,2 @@\n-old\n+new\n+more\n".into(),
        };
        assert_eq!(result(&[Part::text("ok")], Some(&diff)).as_deref(), Some("+2 -1"));
    }

    #[test]
    fn lines_beyond_the_limit_are_counted() {
        let look = Look { unicode: true };
        assert_eq!(some_lines("a\n\tb\nc\nd", 2, look), ["a", "    b", "… 2 more lines"]);
        assert_eq!(some_lines("a\nb", 2, look), ["a", "b"]);
        assert_eq!(some_lines("a\nb\u{7}\nc", 2, look), ["a", "b\\u{7}", "… 1 more line"]);
    }

    #[test]
    fn spaces_hide_nothing() {
        let command = format!("echo hello{}; touch made", " ".repeat(4_000));
        assert_eq!(one_line(&command, 100), "echo hello ; touch made");
    }

    #[test]
    fn one_line_is_not_several() {
        let parts = |texts: &[&str]| texts.iter().map(|text| Part::text(*text)).collect::<Vec<_>>();
        assert_eq!(result(&parts(&["one", "two"]), None).as_deref(), Some("1 line"));
        assert_eq!(result(&parts(&["one\ntwo"]), None).as_deref(), Some("2 lines"));
    }
}
