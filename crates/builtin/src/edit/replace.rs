//! Replacing text in text, exactly if it can be. Pure.
//!
//! An exact search takes time in proportion to the text, however often the old one occurs. No text on
//! the way is longer than a file may be, and a call that is over goes no further.

use convoke_core::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::MAX_BYTES;
use super::line_ends::fitted;
use super::tolerant::tolerant;

/// So many lines are named where a text occurs several times.
const LINES_SHOWN: usize = 10;

// One change. No comment here is for the model: the tool's own arguments say the same words.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    pub(super) old_string: String,
    pub(super) new_string: String,
    pub(super) replace_all: Option<bool>,
}

/// How a change went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Applied {
    /// How many places were changed.
    pub(super) replacements: usize,
    /// The line of the first one.
    pub(super) line: usize,
    /// Whether the text was found only with white space at the ends of lines ignored.
    pub(super) whitespace_ignored: bool,
}

/// Makes all changes, one after the other, or none.
pub(super) fn all(
    text: &str,
    edits: &[Edit],
    path: &str,
    token: &CancellationToken,
) -> Result<(String, Vec<Applied>), ToolError> {
    let mut text = text.to_owned();
    let mut applied = Vec::with_capacity(edits.len());
    for (number, edit) in edits.iter().enumerate() {
        let (changed, how) = one(&text, edit, token).map_err(|problem| {
            let which =
                if edits.len() == 1 { String::new() } else { format!("edit {}: ", number + 1) };
            problem.into_error(&which, path)
        })?;
        text = changed;
        applied.push(how);
    }
    Ok((text, applied))
}

/// Why a change cannot be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    Empty,
    NotFound,
    /// The lines are there, but the new ones cannot be moved to where they are.
    Indentation(usize),
    /// How often the text occurs, and the first lines where it does.
    Ambiguous(usize, Vec<usize>),
    TooLong,
    Stopped,
}

impl Problem {
    fn into_error(self, which: &str, path: &str) -> ToolError {
        match self {
            Self::Stopped => ToolError::cancelled(format!("`{path}` was not changed")),
            problem => ToolError::failed(format!(
                "{which}{}; `{path}` was not changed",
                problem.describe()
            )),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Empty => "`old_string` is empty; use write_file to make a file".to_owned(),
            Self::NotFound => {
                "`old_string` was not found; read the file again and copy the text exactly"
                    .to_owned()
            }
            Self::Indentation(line) => format!(
                "`old_string` was not found; the lines from {line} on differ in indentation, and the \
                 new ones cannot be moved there as they are; read them again and copy them exactly"
            ),
            Self::Ambiguous(count, lines) => {
                let mut shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
                if *count > lines.len() {
                    shown.push("…".to_owned());
                }
                format!(
                    "`old_string` occurs {count} times (lines {}); add lines around it to make it unique, or set `replace_all`",
                    shown.join(", ")
                )
            }
            Self::TooLong => format!("the file would become longer than {MAX_BYTES} bytes"),
            Self::Stopped => "the call is over".to_owned(),
        }
    }

    /// Makes the problem of a text that is at all of these lines.
    pub(super) fn ambiguous(count: usize, lines: impl Iterator<Item = usize>) -> Self {
        Self::Ambiguous(count, lines.take(LINES_SHOWN).collect())
    }
}

fn one(text: &str, edit: &Edit, token: &CancellationToken) -> Result<(String, Applied), Problem> {
    if token.is_cancelled() {
        return Err(Problem::Stopped);
    }
    if edit.old_string.is_empty() {
        return Err(Problem::Empty);
    }
    let (old, new) = fitted(text, edit);
    let Some(first) = text.find(&*old) else { return tolerant(text, edit, token) };
    let count = text.matches(&*old).count();
    if edit.replace_all != Some(true) {
        check_unique(text, &old, first, count)?;
    }
    let kept = text.len().saturating_sub(count.saturating_mul(old.len()));
    if count.saturating_mul(new.len()).saturating_add(kept) > MAX_BYTES {
        return Err(Problem::TooLong);
    }
    let line = lines_of(text, [first].into_iter()).next().unwrap_or(1);
    let applied = Applied { replacements: count, line, whitespace_ignored: false };
    Ok((text.replace(&*old, &new), applied))
}

/// Refuses a text that fits at more than one place. Places that overlap are counted only if there are
/// no others: then there is a choice all the same.
fn check_unique(text: &str, old: &str, first: usize, count: usize) -> Result<(), Problem> {
    if count > 1 {
        let places = text.match_indices(old).map(|(at, _)| at);
        return Err(Problem::ambiguous(count, lines_of(text, places)));
    }
    let next = first + old.chars().next().map_or(1, char::len_utf8);
    match text.get(next..).and_then(|rest| rest.find(old)) {
        Some(at) => Err(Problem::ambiguous(2, lines_of(text, [first, next + at].into_iter()))),
        None => Ok(()),
    }
}

/// Returns the line of each place, in one pass; the places come in order.
fn lines_of(text: &str, places: impl Iterator<Item = usize>) -> impl Iterator<Item = usize> {
    places.scan((0, 1), |(from, line), at| {
        let between = text.as_bytes().get(*from..at).unwrap_or_default();
        *line += memchr::memchr_iter(b'\n', between).count();
        *from = at;
        Some(*line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str) -> Edit {
        Edit { old_string: old.into(), new_string: new.into(), replace_all: None }
    }

    fn changed(text: &str, old: &str, new: &str) -> (String, Applied) {
        attempt(text, &edit(old, new)).unwrap()
    }

    fn attempt(text: &str, edit: &Edit) -> Result<(String, Applied), Problem> {
        one(text, edit, &CancellationToken::new())
    }

    #[test]
    fn exact_text_is_replaced_once() {
        let (text, applied) = changed("a\nb\nc\n", "b", "B");
        assert_eq!(text, "a\nB\nc\n");
        assert_eq!(applied, Applied { replacements: 1, line: 2, whitespace_ignored: false });
    }

    #[test]
    fn what_occurs_twice_needs_more_or_all() {
        assert_eq!(attempt("x\ny\nx\n", &edit("x", "z")), Err(Problem::Ambiguous(2, vec![1, 3])));
        let everywhere = Edit { replace_all: Some(true), ..edit("x", "z") };
        assert_eq!(attempt("x\ny\nx\n", &everywhere).unwrap().0, "z\ny\nz\n");
    }

    #[test]
    fn indentation_may_differ_and_follows_the_file() {
        let text = "impl A {\n    fn f() {\n        old();\n    }\n}\n";
        let (text, applied) = changed(text, "fn f() {\n    old();\n}", "fn f() {\n    new();\n}");
        assert_eq!(text, "impl A {\n    fn f() {\n        new();\n    }\n}\n");
        assert!(applied.whitespace_ignored);
        assert_eq!(applied.line, 2);
    }

    #[test]
    fn line_ends_follow_the_file() {
        let (text, _) = changed("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n");
        assert_eq!(text, "x\r\ny\r\nc\r\n");
        let (text, _) = changed("keep\n  last", "last ", "end");
        assert_eq!(text, "keep\n  end");
    }

    #[test]
    fn tolerance_does_not_guess() {
        assert_eq!(attempt("a\n", &edit("zzz", "b")), Err(Problem::NotFound));
        assert_eq!(
            attempt(" a\nb\n  a\n", &edit("a ", "c")),
            Err(Problem::Ambiguous(2, vec![1, 3]))
        );
        assert_eq!(attempt("a\n\n\n", &edit("  \n \n", "c")), Err(Problem::NotFound));
        assert_eq!(attempt("a", &edit("", "c")), Err(Problem::Empty));
    }

    #[test]
    fn edits_build_on_each_other_and_fail_together() {
        let edits = [edit("a", "b"), edit("b", "c")];
        assert_eq!(all("a\n", &edits, "f", &CancellationToken::new()).unwrap().0, "c\n");
        let error =
            all("a\n", &[edit("a", "b"), edit("nope", "c")], "f", &CancellationToken::new())
                .unwrap_err();
        assert!(error.message.starts_with("edit 2: `old_string` was not found"), "{error}");
        assert!(error.message.ends_with("`f` was not changed"), "{error}");
    }

    #[test]
    fn a_call_that_is_over_changes_nothing_more() {
        let token = CancellationToken::new();
        token.cancel();
        let error = all("a\n", &[edit("a", "b")], "f", &token).unwrap_err();
        assert_eq!(error.kind, convoke_core::ErrorKind::Cancelled);
    }

    #[test]
    fn the_longest_file_may_be_made_and_no_longer_one() {
        let everywhere = |new: &str| Edit { replace_all: Some(true), ..edit("a", new) };
        let half = "a".repeat(MAX_BYTES / 2);
        assert_eq!(attempt(&half, &everywhere("bb")).unwrap().0.len(), MAX_BYTES);
        assert_eq!(attempt(&half, &everywhere("bbb")), Err(Problem::TooLong));
    }
}
