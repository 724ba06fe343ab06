//! A unified diff, coloured, and no longer than is good to read.

use super::brief::{LONGEST, some_lines};
use super::look::Look;
use crate::output::{Stream, Style, columns, folded, harmless};

/// How many lines somebody gets to see who has to judge a change.
const MAX_JUDGED: usize = 200;
/// How far a diff is set off from what we say.
const INDENT: usize = 2;

/// Returns the lines of a diff, at most `limit` of them and a line that says how many are missing.
pub(crate) fn diff(text: &str, limit: usize, stream: &Stream) -> Vec<String> {
    let lines = some_lines(text, limit, Look::of(stream));
    let shown = text.lines().count().min(limit);
    let paint = |(index, line): (usize, String)| match style(&line) {
        _ if index >= shown => stream.paint(Style::Dim, line).to_string(),
        Some(style) => stream.paint(style, line).to_string(),
        None => line,
    };
    lines.into_iter().enumerate().map(paint).collect()
}

/// Returns all of a diff, in rows of at most this many columns.
pub(crate) fn whole(text: &str, width: usize, stream: &Stream) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.lines().map(one_row) {
        let style = style(&line);
        let painted = |row: &str| match style {
            Some(style) => stream.paint(style, row).to_string(),
            None => row.to_owned(),
        };
        rows.extend(folded(&line, width).into_iter().map(painted));
    }
    rows
}

/// Tells whether somebody who has to judge a diff does not see all of it: some lines, or the end of one.
pub(crate) fn is_cut(text: &str) -> bool {
    let is_wide = |line| columns(&one_row(line)) > LONGEST;
    text.lines().nth(MAX_JUDGED).is_some() || text.lines().any(is_wide)
}

fn one_row(line: &str) -> String {
    harmless(&line.replace('\t', "    "))
}

/// Writes a diff somebody has to judge, indented.
pub(crate) fn show(stream: &Stream, text: &str) {
    for line in diff(text, MAX_JUDGED, stream) {
        stream.line(format_args!("{:INDENT$}{line}", ""));
    }
}

fn style(line: &str) -> Option<Style> {
    match line.chars().next() {
        _ if line.starts_with("+++") || line.starts_with("---") => Some(Style::Name),
        Some('+') => Some(Style::Good),
        Some('-') => Some(Style::Bad),
        Some('@') => Some(Style::Place),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n";

    #[test]
    fn a_diff_without_colour_is_itself() {
        let lines = diff(DIFF, 10, &Stream::in_memory());
        assert_eq!(lines.join("\n") + "\n", DIFF);
    }

    #[test]
    fn each_kind_of_line_has_its_colour() {
        let lines = diff(DIFF, 10, &Stream::on_terminal(80));
        assert_eq!(
            lines,
            [
                "\u{1b}[1m--- a\u{1b}[0m",
                "\u{1b}[1m+++ b\u{1b}[0m",
                "\u{1b}[36m@@ -1 +1 @@\u{1b}[0m",
                "\u{1b}[1m\u{1b}[31m-old\u{1b}[0m",
                "\u{1b}[32m+new\u{1b}[0m",
                " same",
            ]
        );
    }

    #[test]
    fn a_change_that_is_judged_is_shown_nearly_whole() {
        let stream = Stream::in_memory();
        show(&stream, &"+x\n".repeat(201));
        let shown = stream.contents();
        assert_eq!(shown.lines().filter(|line| *line == "  +x").count(), MAX_JUDGED);
        assert!(shown.ends_with("  ... 1 more line\n"), "{shown}");
    }

    #[test]
    fn what_is_left_out_of_a_change_is_known_and_all_of_it_is_in_the_whole() {
        for (text, expected) in [
            ("+x\n".repeat(200), false),
            ("+x\n".repeat(201), true),
            (format!("+{}\n", "x".repeat(1_999)), false),
            (format!("+{}; the end\n", "x".repeat(2_000)), true),
            (format!("+{}\n", "\u{7}".repeat(400)), true),
        ] {
            let stream = Stream::in_memory();
            show(&stream, &text);
            assert_eq!(is_cut(&text), expected);
            assert_eq!(stream.contents().contains("..."), expected, "{}", text.len());
            assert_eq!(whole(&text, usize::MAX, &stream).join("\n") + "\n", harmless(&text));
        }
    }

    #[test]
    fn a_long_diff_says_how_much_is_missing() {
        let text = "+\u{1b}[2J\n".repeat(130);
        let lines = diff(&text, 10, &Stream::in_memory());
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[0], "+\\u{1b}[2J");
        assert_eq!(lines[10], "... 120 more lines");
    }
}
