//! Texts that are too long to be read, cut in the middle.

/// A text, or its beginning and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shortened<'a> {
    /// The text, or its beginning.
    pub(super) head: &'a str,
    /// What was cut, if anything was.
    pub(super) cut: Option<Cut<'a>>,
}

/// What was cut from a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut<'a> {
    /// How many bytes are missing.
    pub(super) bytes: usize,
    /// How the text ends.
    pub(super) tail: &'a str,
}

/// Returns a text if it has at most `limit` bytes; otherwise its beginning and its end, which are about as
/// long together. The end is a quarter of it: what went wrong is often said last.
pub(super) fn shorten(text: &str, limit: usize) -> Shortened<'_> {
    if text.len() <= limit {
        return Shortened { head: text, cut: None };
    }
    let head = text.get(..text.floor_char_boundary(limit - limit / 4)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - limit / 4)..).unwrap_or_default();
    let bytes = text.len() - head.len() - tail.len();
    Shortened { head, cut: Some(Cut { bytes, tail }) }
}

/// Returns the beginning of a line, with a mark if that is not all.
pub(super) fn beginning(line: &str, letters: usize) -> String {
    match line.char_indices().nth(letters) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(shorten("short", 5), Shortened { head: "short", cut: None });
        let text = format!("{}{}", "a".repeat(90), "z".repeat(10));
        let short = shorten(&text, 20);
        assert_eq!(short.head, "a".repeat(15));
        assert_eq!(short.cut, Some(Cut { bytes: 80, tail: "zzzzz" }));
    }

    #[test]
    fn letters_are_not_cut_apart() {
        for limit in 0..40 {
            let text = "漢字".repeat(10);
            let short = shorten(&text, limit);
            let Some(cut) = short.cut else { panic!("{limit}") };
            assert_eq!(short.head.len() + cut.bytes + cut.tail.len(), text.len());
            assert!(short.head.len() + cut.tail.len() <= limit);
        }
        assert_eq!([beginning("漢字漢字", 3), beginning("ab", 2)], ["漢字漢…", "ab"]);
    }
}
