//! Replacing text in text. Pure.

use convoke_core::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One change.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    /// The text to replace.
    #[serde(alias = "old_text")]
    pub(super) old_string: String,
    /// What to put in its place.
    #[serde(alias = "new_text")]
    pub(super) new_string: String,
    /// Whether to replace every occurrence.
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
) -> Result<(String, Vec<Applied>), ToolError> {
    let mut text = text.to_owned();
    let mut applied = Vec::with_capacity(edits.len());
    for (number, edit) in edits.iter().enumerate() {
        let (changed, how) = one(&text, edit).map_err(|problem| {
            let which =
                if edits.len() == 1 { String::new() } else { format!("edit {}: ", number + 1) };
            ToolError::failed(format!("{which}{}; `{path}` was not changed", problem.describe()))
        })?;
        text = changed;
        applied.push(how);
    }
    Ok((text, applied))
}

/// Why a change cannot be made.
#[derive(Debug, PartialEq, Eq)]
enum Problem {
    Empty,
    NotFound,
    Ambiguous(Vec<usize>),
}

impl Problem {
    fn describe(&self) -> String {
        match self {
            Self::Empty => "`old_string` is empty; use write_file to make a file".to_owned(),
            Self::NotFound => {
                "`old_string` was not found; read the file again and copy the text exactly"
                    .to_owned()
            }
            Self::Ambiguous(lines) => {
                let shown: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
                format!(
                    "`old_string` occurs {} times (lines {}); add lines around it to make it unique, or set `replace_all`",
                    lines.len(),
                    shown.join(", ")
                )
            }
        }
    }
}

fn one(text: &str, edit: &Edit) -> Result<(String, Applied), Problem> {
    let (old, new) = (edit.old_string.as_str(), edit.new_string.as_str());
    if old.is_empty() {
        return Err(Problem::Empty);
    }
    let places: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
    let line = |at: usize| 1 + text.get(..at).unwrap_or_default().matches('\n').count();
    match places.as_slice() {
        [] => tolerant(text, edit),
        [_, _, ..] if edit.replace_all != Some(true) => {
            Err(Problem::Ambiguous(places.iter().map(|at| line(*at)).collect()))
        }
        [first, ..] => {
            let applied = Applied {
                replacements: places.len(),
                line: line(*first),
                whitespace_ignored: false,
            };
            Ok((text.replace(old, new), applied))
        }
    }
}

/// Looks for lines that are the same but for white space at their ends, and puts the new ones in with
/// the file's indentation and line ends.
fn tolerant(text: &str, edit: &Edit) -> Result<(String, Applied), Problem> {
    let wanted: Vec<&str> = edit.old_string.trim_matches('\n').lines().map(str::trim).collect();
    if wanted.iter().all(|line| line.is_empty()) {
        return Err(Problem::NotFound);
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let same = |window: &&[&str]| window.iter().map(|line| line.trim()).eq(wanted.iter().copied());
    let places: Vec<usize> = lines
        .windows(wanted.len())
        .enumerate()
        .filter(|(_, window)| same(window))
        .map(|(at, _)| at)
        .collect();
    let start = match places.as_slice() {
        [] => return Err(Problem::NotFound),
        [only] => *only,
        several => return Err(Problem::Ambiguous(several.iter().map(|at| at + 1).collect())),
    };
    let (before, rest) = lines.split_at_checked(start).unwrap_or((&lines, &[]));
    let (replaced, after) = rest.split_at_checked(wanted.len()).unwrap_or((rest, &[]));
    let changed = [before.concat(), reindented(edit, replaced), after.concat()].concat();
    Ok((changed, Applied { replacements: 1, line: start + 1, whitespace_ignored: true }))
}

/// Moves the new lines by as much as the old ones differ from the file's, and ends them like the file.
fn reindented(edit: &Edit, replaced: &[&str]) -> String {
    let given = first_indentation(edit.old_string.lines());
    let actual = first_indentation(replaced.iter().copied());
    let ending = if replaced.iter().any(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
    let last_has_ending = replaced.last().is_none_or(|line| line.ends_with('\n'));
    let new = edit.new_string.strip_suffix('\n').unwrap_or(&edit.new_string);
    if new.is_empty() {
        return String::new();
    }
    let moved = |line: &str| match line.strip_prefix(given) {
        _ if line.trim().is_empty() => String::new(),
        Some(rest) => format!("{actual}{rest}"),
        None => line.to_owned(),
    };
    let mut text = new.lines().map(moved).collect::<Vec<_>>().join(ending);
    if last_has_ending {
        text.push_str(ending);
    }
    text
}

/// Returns the indentation of the first line that has any text.
fn first_indentation<'a>(mut lines: impl Iterator<Item = &'a str>) -> &'a str {
    lines.find(|line| !line.trim().is_empty()).map(indentation).unwrap_or_default()
}

fn indentation(line: &str) -> &str {
    line.get(..line.len() - line.trim_start().len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str) -> Edit {
        Edit { old_string: old.into(), new_string: new.into(), replace_all: None }
    }

    fn changed(text: &str, old: &str, new: &str) -> (String, Applied) {
        one(text, &edit(old, new)).unwrap()
    }

    #[test]
    fn exact_text_is_replaced_once() {
        let (text, applied) = changed("a\nb\nc\n", "b", "B");
        assert_eq!(text, "a\nB\nc\n");
        assert_eq!(applied, Applied { replacements: 1, line: 2, whitespace_ignored: false });
    }

    #[test]
    fn what_occurs_twice_needs_more_or_all() {
        assert_eq!(one("x\ny\nx\n", &edit("x", "z")), Err(Problem::Ambiguous(vec![1, 3])));
        let everywhere = Edit { replace_all: Some(true), ..edit("x", "z") };
        assert_eq!(one("x\ny\nx\n", &everywhere).unwrap().0, "z\ny\nz\n");
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
        assert_eq!(one("a\n", &edit("zzz", "b")), Err(Problem::NotFound));
        assert_eq!(one(" a\nb\n  a\n", &edit("a ", "c")), Err(Problem::Ambiguous(vec![1, 3])));
        assert_eq!(one("a\n\n\n", &edit("  \n \n", "c")), Err(Problem::NotFound));
        assert_eq!(one("a", &edit("", "c")), Err(Problem::Empty));
    }

    #[test]
    fn edits_build_on_each_other_and_fail_together() {
        let edits = [edit("a", "b"), edit("b", "c")];
        assert_eq!(all("a\n", &edits, "f").unwrap().0, "c\n");
        let error = all("a\n", &[edit("a", "b"), edit("nope", "c")], "f").unwrap_err();
        assert!(error.message.starts_with("edit 2: `old_string` was not found"), "{error}");
        assert!(error.message.ends_with("`f` was not changed"), "{error}");
    }
}
