//! Texts of differences, as git writes them.

use similar::TextDiff;

/// How much of a diff is told in events and reports.
const MOST_TOLD: usize = 64 * 1024;
/// Files that are longer are not compared line by line.
const MOST_COMPARED: usize = 1024 * 1024;

/// Returns the beginning of a diff as text, cut after a line, and whether it was cut.
pub(super) fn bounded(diff: &[u8]) -> (String, bool) {
    if diff.len() <= MOST_TOLD {
        return (String::from_utf8_lossy(diff).into_owned(), false);
    }
    let head = diff.get(..MOST_TOLD).unwrap_or(diff);
    let end = head.iter().rposition(|byte| *byte == b'\n').map_or(head.len(), |at| at + 1);
    (String::from_utf8_lossy(head.get(..end).unwrap_or(head)).into_owned(), true)
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side<'a> {
    /// The path.
    pub(super) path: &'a str,
    /// The mode, as git has it: `100644`, `100755` or `120000`.
    pub(super) mode: &'static str,
    /// What it says; of a link, where it leads.
    pub(super) content: &'a [u8],
    /// A word that stands for what it says.
    pub(super) hash: &'a str,
}

/// How two files differ, and how many lines are new and gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) text: String,
    pub(super) lines: Option<(u64, u64)>,
}

/// Compares two files, of which one may not be there.
pub(super) fn compare(old: Option<Side<'_>>, new: Option<Side<'_>>) -> Difference {
    let (from, to) = match (old, new) {
        (Some(old), Some(new)) => (old.path, new.path),
        (Some(only), None) | (None, Some(only)) => (only.path, only.path),
        (None, None) => ("", ""),
    };
    let (a, b) = (quoted("a/", from), quoted("b/", to));
    let mut text = format!("diff --git {a} {b}\n");
    match (old, new) {
        (Some(old), Some(new)) => {
            if old.mode != new.mode {
                text.push_str(&format!("old mode {}\nnew mode {}\n", old.mode, new.mode));
            }
            if from != to {
                let (from, to) = (quoted("", from), quoted("", to));
                text.push_str(&format!("rename from {from}\nrename to {to}\n"));
            }
        }
        (None, Some(new)) => text.push_str(&format!("new file mode {}\n", new.mode)),
        (Some(old), None) => text.push_str(&format!("deleted file mode {}\n", old.mode)),
        (None, None) => {}
    }
    let content =
        |side: Option<Side<'_>>| side.map(|side| side.content.to_vec()).unwrap_or_default();
    let (before, after) = (content(old), content(new));
    if old.is_some() && new.is_some() && before == after {
        return Difference { text, lines: Some((0, 0)) };
    }
    let hash =
        |side: Option<Side<'_>>| side.map_or("0000000000000000", |side| side.hash).to_owned();
    text.push_str(&format!("index {}..{}\n", hash(old), hash(new)));
    let a = if old.is_some() { a } else { "/dev/null".to_owned() };
    let b = if new.is_some() { b } else { "/dev/null".to_owned() };
    let (Some(before), Some(after)) = (lines(&before), lines(&after)) else {
        text.push_str(&format!("Binary files {a} and {b} differ\n"));
        return Difference { text, lines: None };
    };
    let diff = TextDiff::from_lines(before, after);
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            similar::ChangeTag::Insert => added += 1,
            similar::ChangeTag::Delete => removed += 1,
            similar::ChangeTag::Equal => {}
        }
    }
    if added + removed > 0 {
        text.push_str(&diff.unified_diff().header(&a, &b).to_string());
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Difference { text, lines: Some((added, removed)) }
}

/// Returns a content that can be compared line by line.
fn lines(content: &[u8]) -> Option<&str> {
    let is_text = content.len() <= MOST_COMPARED && !content.contains(&0);
    std::str::from_utf8(content).ok().filter(|_| is_text)
}

/// Returns a path as git writes it in a diff: in quotes, if it has something in it that would not be read
/// back.
fn quoted(prefix: &str, path: &str) -> String {
    let is_plain = |letter: char| !letter.is_control() && letter != '"' && letter != '\\';
    if path.chars().all(is_plain) {
        return format!("{prefix}{path}");
    }
    let mut shown = format!("\"{prefix}");
    for letter in path.chars() {
        match letter {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '"' | '\\' => shown.extend(['\\', letter]),
            letter if letter.is_control() => {
                let mut bytes = [0; 4];
                for byte in letter.encode_utf8(&mut bytes).bytes() {
                    shown.push_str(&format!("\\{byte:03o}"));
                }
            }
            letter => shown.push(letter),
        }
    }
    shown.push('"');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side<'a>(path: &'a str, content: &'a [u8]) -> Side<'a> {
        Side { path, mode: "100644", content, hash: "x" }
    }

    #[test]
    fn a_change_looks_as_git_writes_it() {
        let difference = compare(Some(side("f", b"one\ntwo\n")), Some(side("f", b"one\n2\n")));
        assert_eq!(difference.lines, Some((1, 1)));
        insta::assert_snapshot!(difference.text, @"
        diff --git a/f b/f
        index x..x
        --- a/f
        +++ b/f
        @@ -1,2 +1,2 @@
         one
        -two
        +2
        ");
    }

    #[test]
    fn what_has_no_lines_is_only_said_to_differ() {
        let difference = compare(None, Some(side("new\nline", b"\0")));
        assert_eq!(difference.lines, None);
        assert_eq!(
            difference.text,
            "diff --git \"a/new\\nline\" \"b/new\\nline\"\nnew file mode 100644\nindex \
             0000000000000000..x\nBinary files /dev/null and \"b/new\\nline\" differ\n"
        );
    }

    #[test]
    fn a_long_diff_is_cut_after_a_line() {
        let long = "+line\n".repeat(20_000);
        let (shown, is_cut) = bounded(long.as_bytes());
        assert!(is_cut && shown.ends_with("+line\n") && shown.len() <= MOST_TOLD);
        assert_eq!(bounded(b"+a\n"), ("+a\n".to_owned(), false));
    }
}
