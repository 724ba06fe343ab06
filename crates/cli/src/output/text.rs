//! Text that fits: cut, wrapped, and safe to show.

use std::fmt::{self, Display, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns how many columns a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Returns the text, or its beginning and a mark that something is missing, in at most `width`
/// columns.
pub(crate) fn cut(text: &str, width: usize, mark: &str) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    match width.checked_sub(columns(mark)) {
        Some(room) => format!("{}{mark}", prefix(text, room).trim_end()),
        None => prefix(text, width).to_owned(),
    }
}

/// Returns the longest beginning that takes at most `width` columns.
fn prefix(text: &str, width: usize) -> &str {
    let mut taken = 0;
    for (index, letter) in text.char_indices() {
        taken += letter.width().unwrap_or(0);
        if taken > width {
            return text.get(..index).unwrap_or_default();
        }
    }
    text
}

/// Breaks a text into lines of at most `width` columns, between words. A word that is longer than a
/// line stays whole. Line breaks of the text stay; without a width nothing else is broken.
pub(crate) fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return text.lines().map(str::to_owned).collect() };
    text.lines().flat_map(|line| wrap_line(line, width.max(20))).collect()
}

fn wrap_line(line: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split_whitespace() {
        match lines.last_mut() {
            Some(last) if last.is_empty() => last.push_str(word),
            Some(last) if columns(last) + 1 + columns(word) <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Breaks a text into pieces of at most `width` columns: after a space that is not too far back, or anywhere. Nothing
/// is left out, and line breaks are not looked for.
pub(crate) fn folded(text: &str, width: usize) -> Vec<&str> {
    let width = width.max(20);
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let piece = prefix(rest, width);
        if piece.len() == rest.len() {
            pieces.push(rest);
            return pieces;
        }
        let gap = piece.rfind(' ').filter(|gap| *gap >= piece.len() / 2);
        let piece = gap.and_then(|gap| piece.get(..=gap)).unwrap_or(piece);
        pieces.push(piece);
        rest = rest.get(piece.len()..).unwrap_or_default();
    }
}

/// Breaks a text into pieces of at most `width` columns, anywhere. All but the last are full.
pub(crate) fn filled(text: &str, width: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let piece = prefix(rest, width.max(20));
        pieces.push(piece);
        rest = rest.get(piece.len()..).unwrap_or_default();
        if rest.is_empty() {
            return pieces;
        }
    }
}

/// Does the same from the end: all but the first are full.
pub(crate) fn filled_from_end(text: &str, width: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let begins = suffix(rest, width.max(20));
        pieces.push(rest.get(begins..).unwrap_or_default());
        rest = rest.get(..begins).unwrap_or_default();
        if rest.is_empty() {
            pieces.reverse();
            return pieces;
        }
    }
}

/// Returns where the longest end begins that takes at most `width` columns.
fn suffix(text: &str, width: usize) -> usize {
    let mut taken = 0;
    for (index, letter) in text.char_indices().rev() {
        taken += letter.width().unwrap_or(0);
        if taken > width {
            return index + letter.len_utf8();
        }
    }
    0
}

/// Returns the first sentence of a text, on one line.
pub(crate) fn first_sentence(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.find(". ") {
        Some(stop) => line.get(..=stop).unwrap_or(line),
        None => line,
    }
}

/// A text from somewhere else, made harmless where it meets a terminal.
#[derive(Debug)]
pub(crate) struct Printable<'a> {
    text: &'a str,
    guarded: bool,
}

impl<'a> Printable<'a> {
    pub(super) const fn new(text: &'a str, guarded: bool) -> Self {
        Self { text, guarded }
    }
}

/// Returns a text from somewhere else with its control characters made visible.
pub(crate) fn harmless(text: &str) -> String {
    Printable::new(text, true).to_string()
}

/// Returns a text on one line: what would break it, would steer a terminal or is not seen is spelled out.
pub(crate) fn spelled(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '\'' | '\\' => line.push(letter),
            other => line.extend(other.escape_debug()),
        }
    }
    line
}

/// Returns a word of a command line so that it is told from its neighbours: in quotes where it is empty or has gaps,
/// quotes or letters that are not seen.
pub(crate) fn word(text: &str) -> String {
    let quoted = format!("{text:?}");
    let is_plain =
        quoted.len() == text.len() + 2 && !text.is_empty() && !text.contains(char::is_whitespace);
    if is_plain { text.to_owned() } else { quoted }
}

/// Tells whether a letter changes the direction in which its neighbours are shown, so that a text can
/// look like another.
const fn turns_around(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Display for Printable<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.guarded {
            return formatter.write_str(self.text);
        }
        let mut letters = self.text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\n' | '\t' => formatter.write_char(letter)?,
                '\r' if letters.peek() == Some(&'\n') => {}
                letter if letter.is_control() || turns_around(letter) => {
                    write!(formatter, "{}", letter.escape_default())?;
                }
                letter => formatter.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_text_fits_also_with_wide_letters() {
        assert_eq!(cut("hello", 5, "…"), "hello");
        assert_eq!(cut("hello world", 7, "…"), "hello…");
        assert_eq!(cut("hello world", 9, "..."), "hello...");
        assert_eq!(cut("漢字漢字", 5, "…"), "漢字…");
        assert_eq!(cut("hello", 0, "…"), "");
        assert_eq!(cut("hello", 2, "..."), "he");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("a b\n\nc", None), ["a b", "", "c"]);
        let text = "one two three four five six\nseven";
        assert_eq!(wrap(text, Some(20)), ["one two three four", "five six", "seven"]);
        let long = "x".repeat(30);
        assert_eq!(wrap(&format!("a {long} b"), Some(20)), ["a", &long, "b"]);
    }

    #[test]
    fn a_text_does_not_look_like_another() {
        assert_eq!(harmless("rm \u{202e}txt.a\u{9b}2J"), "rm \\u{202e}txt.a\\u{9b}2J");
        assert_eq!(harmless("שלום été\n\t"), "שלום été\n\t");
    }

    #[test]
    fn what_is_spelled_out_is_one_line() {
        let text = "a\n\tb\r\u{1b}[2J\u{2028}\u{202e}\u{200b}\u{a0}é \"c\" \\";
        let line = "a\\n\\tb\\r\\u{1b}[2J\\u{2028}\\u{202e}\\u{200b}\\u{a0}é \"c\" \\";
        assert_eq!(spelled(text), line);
        assert_eq!(spelled(line), line, "nothing is spelled twice");
    }

    #[test]
    fn a_word_is_told_from_its_neighbours() {
        for plain in ["npx", "--a=b", "@x/y", "été", "it's", ";"] {
            assert_eq!(word(plain), plain);
        }
        for (text, shown) in [
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("a\nb", r#""a\nb""#),
            (r#"a"b"#, r#""a\"b""#),
            ("\u{200b}", r#""\u{200b}""#),
        ] {
            assert_eq!(word(text), shown);
        }
    }

    #[test]
    fn folded_text_is_whole() {
        let text =
            format!("one two three four five {}   漢字漢字漢字漢字漢字漢字 ", "x".repeat(50));
        let pieces = folded(&text, 20);
        assert_eq!(pieces.concat(), text);
        assert!(pieces.iter().all(|piece| columns(piece) <= 20), "{pieces:?}");
        assert_eq!(pieces.first(), Some(&"one two three four "));
        assert_eq!(folded("", 20), [""]);
    }

    #[test]
    fn filled_pieces_are_whole_from_both_ends() {
        let text = format!("{}漢{}é", "x".repeat(19), "y".repeat(30));
        let (one, other) = (filled(&text, 20), filled_from_end(&text, 20));
        assert!(one.concat() == text && other.concat() == text);
        assert_eq!(one.iter().map(|piece| columns(piece)).collect::<Vec<_>>(), [19, 20, 13]);
        assert_eq!(other.iter().map(|piece| columns(piece)).collect::<Vec<_>>(), [12, 20, 20]);
        assert_eq!((filled("", 20), filled_from_end("", 20)), (vec![""], vec![""]));
    }

    #[test]
    fn sentences_end_with_a_stop_and_a_space() {
        assert_eq!(first_sentence("Reads v1.2 files. Then more."), "Reads v1.2 files.");
        assert_eq!(first_sentence("No stop\nsecond line"), "No stop");
        assert_eq!(first_sentence(""), "");
    }
}
