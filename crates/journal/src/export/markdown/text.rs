//! Text in Markdown that stays text.

use crate::export::amounts::size;
use crate::export::brief::one_line;
use crate::export::shorten::shorten;
use crate::export::visible::{visible, visible_line};

/// How long one text is at most, in bytes.
const LONGEST: usize = 16 * 1024;
/// How many letters a line has at most.
const LINE: usize = 2_000;

/// Returns text on one line, in which nothing is markup, cut if it is too long.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::new();
    escape(&one_line(text, LINE), &mut out);
    out
}

/// Returns what a person wrote, as a quotation. What was laid out with space stays laid out.
pub(super) fn spoken(text: &str) -> String {
    let text = text.trim();
    let is_laid_out = text.lines().any(|line| line.starts_with([' ', '\t']));
    if is_laid_out || text.len() > LINE {
        return quoted(&fenced("", text));
    }
    let mut lines = Vec::new();
    for line in visible(text).lines() {
        let mut escaped = String::new();
        escape(line, &mut escaped);
        lines.push(escaped);
    }
    // A backslash keeps a line break that is followed by more of the same paragraph.
    let nexts = lines.iter().skip(1).map(|next| !next.trim().is_empty()).chain([false]);
    let joined = lines.iter().zip(nexts).map(|(line, goes_on)| {
        let keep = if goes_on && !line.trim().is_empty() { "\\" } else { "" };
        format!("{line}{keep}\n")
    });
    quoted(&joined.collect::<String>())
}

/// Returns text on one line for a place in which HTML is read, and Markdown is not.
pub(super) fn html(text: &str) -> String {
    let text = visible_line(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Writes text with a backslash before everything that could be markup.
pub(super) fn escape(text: &str, out: &mut String) {
    let mut line = Line::after(out);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if line.is_markup(letter, letters.peek().copied()) {
            out.push('\\');
        }
        out.push(letter);
        line.go_on(letter);
    }
}

/// What is known of the line that is being written: where a letter stands decides what it means.
#[derive(Clone, Copy)]
struct Line {
    /// Whether there was nothing but space.
    blank: bool,
    /// Whether there was nothing but digits, after space.
    number: bool,
    last: char,
}

impl Line {
    const EMPTY: Self = Self { blank: true, number: false, last: '\n' };

    fn after(written: &str) -> Self {
        let mut line = Self::EMPTY;
        let begun = written.rsplit('\n').next().unwrap_or_default();
        begun.chars().for_each(|letter| line.go_on(letter));
        line
    }

    fn go_on(&mut self, letter: char) {
        if letter == '\n' {
            *self = Self::EMPTY;
            return;
        }
        self.number = (self.blank || self.number) && letter.is_ascii_digit();
        self.blank &= letter.is_whitespace();
        self.last = letter;
    }

    fn is_markup(self, letter: char, next: Option<char>) -> bool {
        match letter {
            '\\' | '`' | '*' | '[' | ']' | '<' | '|' | '~' => true,
            '_' => !(self.last.is_alphanumeric() && next.is_some_and(char::is_alphanumeric)),
            '&' => next.is_some_and(|next| next == '#' || next.is_alphabetic()),
            '#' | '>' | '-' | '+' | '=' => self.blank,
            '.' | ')' => self.number,
            _ => false,
        }
    }
}

/// Returns text as code within a line.
pub(super) fn code(text: &str) -> String {
    let text = visible_line(text);
    if text.is_empty() {
        return String::new();
    }
    let ticks = "`".repeat(longest_run(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{text}{space}{ticks}")
}

/// Returns a text as it stands, between fences that are longer than any in it. What is too long is cut in
/// the middle, and the cut is marked.
pub(super) fn fenced(language: &str, text: &str) -> String {
    let short = shorten(text.trim_end_matches('\n'), LONGEST);
    let mut body = visible(short.head).into_owned();
    if let Some(cut) = short.cut {
        body.push_str(&format!("\n… {} are not shown here …\n", size(cut.bytes)));
        body.push_str(&visible(cut.tail));
    }
    let ticks = "`".repeat((longest_run(&body) + 1).max(3));
    let language: String = language.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{ticks}{language}\n{body}\n{ticks}\n\n")
}

fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default()
}

/// Returns a text as a quotation.
pub(super) fn quoted(markdown: &str) -> String {
    let lines = markdown.trim_end().lines();
    let lines = lines.map(|line| format!("> {line}").trim_end().to_owned() + "\n");
    lines.collect::<String>() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_could_be_markup_is_marked() {
        for (text, shown) in [
            ("run_command of a_b", "run_command of a_b"),
            ("_x_ *y* `z`", "\\_x\\_ \\*y\\* \\`z\\`"),
            ("- a", "\\- a"),
            ("a - b", "a - b"),
            ("12. a", "12\\. a"),
            ("v1.2", "v1.2"),
            ("# a", "\\# a"),
            ("</details>", "\\</details>"),
            ("[a](b) ![c](d)", "\\[a\\](b) !\\[c\\](d)"),
            ("a & b &lt;", "a & b \\&lt;"),
            ("a\n\n# b\u{202e}", "a # b⟨U+202E⟩"),
        ] {
            assert_eq!(plain(text), shown);
        }
    }

    #[test]
    fn fences_are_longer_than_those_inside() {
        assert_eq!(fenced("sh", "a\n"), "```sh\na\n```\n\n");
        assert_eq!(fenced("", "````\nx\n````"), "`````\n````\nx\n````\n`````\n\n");
        assert_eq!(fenced("a`b\nc", "x"), "```abc\nx\n```\n\n");
        assert!(fenced("", &"x".repeat(LONGEST * 2)).contains("… 16 KiB are not shown here …"));
        assert_eq!(
            [code("a"), code("a`b"), code("`"), code("")],
            ["`a`", "``a`b``", "`` ` ``", ""]
        );
        assert_eq!(quoted("a\n\nb\n"), "> a\n>\n> b\n\n");
    }

    #[test]
    fn what_a_person_wrote_keeps_its_lines() {
        assert_eq!(spoken("a\nb\n\n\n# c\n"), "> a\\\n> b\n>\n>\n> \\# c\n\n");
        assert_eq!(spoken("a:\n    b\n"), "> ```\n> a:\n>     b\n> ```\n\n");
    }
}
