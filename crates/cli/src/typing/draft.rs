//! What is typed, as far as it is not complete: bytes go in, lines come out.
//!
//! Little can be done to a draft: letters are added at its end, the last one, the last word or all of it
//! is taken away. Where more is wanted, the run has ended and there is an editor.

/// What begins a key that is no letter.
const ESCAPE: u8 = 0x1b;
/// What a terminal puts before and after pasted text.
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// The longest key there is; what is longer is none.
const LONGEST_KEY: usize = 32;

/// An unfinished line, or several.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    text: String,
    /// The beginning of a letter or a key whose end has not come yet.
    begun: Vec<u8>,
    is_paste: bool,
}

impl Draft {
    /// Returns what there is.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Takes it away.
    pub(crate) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Takes in what was typed, and returns the lines that are complete.
    pub(crate) fn take_in(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for byte in bytes {
            let Some(key) = self.key(*byte) else { continue };
            match key {
                Key::Enter if !self.is_paste && !self.goes_on() => lines.push(self.take_text()),
                key => self.press(key),
            }
        }
        lines.retain(|line| !line.trim().is_empty());
        lines
    }

    /// Takes in what was typed, and completes nothing: lines stay below each other.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let Some(key) = self.key(*byte) else { continue };
            let says_nothing = self.text.trim().is_empty() || self.text.ends_with('\n');
            if key != Key::Enter || self.is_paste || !says_nothing {
                self.press(key);
            }
        }
    }

    /// Returns the key that this byte completes.
    fn key(&mut self, byte: u8) -> Option<Key> {
        self.begun.push(byte);
        let key = Key::of(&self.begun)?;
        self.begun.clear();
        Some(key)
    }

    /// A backslash at the end of a line means that the line goes on.
    fn goes_on(&mut self) -> bool {
        let goes_on = self.text.ends_with('\\');
        if goes_on {
            self.text.pop();
        }
        goes_on
    }

    fn press(&mut self, key: Key) {
        match key {
            // There is nothing to complete here.
            Key::Letter('\t') if !self.is_paste => {}
            Key::Letter(letter) => self.text.push(letter),
            Key::Enter | Key::NewLine => self.text.push('\n'),
            Key::Back => drop(self.text.pop()),
            Key::BackWord => {
                let kept = self.text.trim_end();
                let kept = kept.trim_end_matches(|letter: char| !letter.is_whitespace());
                self.text.truncate(kept.len());
            }
            Key::BackAll => self.text.clear(),
            Key::PasteBegins => self.is_paste = true,
            Key::PasteEnds => self.is_paste = false,
            Key::Other => {}
        }
    }
}

/// What was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Letter(char),
    Enter,
    /// Enter, but the line goes on.
    NewLine,
    Back,
    BackWord,
    BackAll,
    PasteBegins,
    PasteEnds,
    /// One that does nothing here.
    Other,
}

impl Key {
    /// Returns the key these bytes are; nothing as long as they may be the beginning of one.
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [] | [ESCAPE] => None,
            [ESCAPE, b'\r' | b'\n'] => Some(Self::NewLine),
            _ if bytes == PASTE_BEGINS => Some(Self::PasteBegins),
            _ if bytes == PASTE_ENDS => Some(Self::PasteEnds),
            // Escape `[` parameters letter, and escape `O` letter.
            [ESCAPE, b'[' | b'O'] => None,
            [ESCAPE, b'[', .., 0x40..=0x7e] => Some(Self::Other),
            [ESCAPE, b'[', ..] if bytes.len() < LONGEST_KEY => None,
            [ESCAPE, ..] => Some(Self::Other),
            [b'\r' | b'\n'] => Some(Self::Enter),
            [0x7f | 0x08] => Some(Self::Back),
            [0x17] => Some(Self::BackWord),
            [0x15] => Some(Self::BackAll),
            [b'\t'] => Some(Self::Letter('\t')),
            [0..0x20] => Some(Self::Other),
            _ => match std::str::from_utf8(bytes) {
                Ok(text) => Some(text.chars().next().map_or(Self::Other, Self::Letter)),
                Err(error) if error.error_len().is_none() => None,
                Err(_) => Some(Self::Other),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(bytes: &[u8]) -> (Vec<String>, String) {
        let mut draft = Draft::default();
        let lines = draft.take_in(bytes);
        (lines, draft.text().to_owned())
    }

    #[test]
    fn enter_completes_a_line_and_the_rest_stays() {
        assert_eq!(typed(b"one\ntwo\r three"), (vec!["one".into(), "two".into()], " three".into()));
        assert_eq!(typed(b"\n  \n"), (vec![], String::new()));
    }

    #[test]
    fn what_is_kept_completes_nothing() {
        let mut draft = Draft::default();
        assert_eq!(draft.take_in(b"and say ye"), [""; 0]);
        draft.keep(b"s\n\n then");
        draft.keep(b" more\x7f\x1b[200~\n\nx\x1b[201~\n");
        assert_eq!(draft.text(), "and say yes\n then mor\n\nx\n");
        draft.take_text();
        draft.keep(b"\n \n");
        assert_eq!(draft.text(), " ");
    }

    #[test]
    fn a_pasted_text_completes_nothing() {
        let (lines, text) = typed(b"a\t \x1b[200~x\ry\n\tz\x1b[201~ b");
        assert_eq!((lines.len(), text.as_str()), (0, "a x\ny\n\tz b"));
        assert_eq!(typed(b"\x1b[200~x\ny\x1b[201~\n").0, ["x\ny"]);
    }

    #[test]
    fn a_line_goes_on_after_a_backslash_or_with_alt_enter() {
        assert_eq!(typed(b"a\\\nb\n").0, ["a\nb"]);
        assert_eq!(typed(b"a\x1b\rb\n").0, ["a\nb"]);
    }

    #[test]
    fn letters_words_and_all_can_be_taken_back() {
        assert_eq!(typed("é\x7fab\x08".as_bytes()).1, "a");
        assert_eq!(typed(b"one two  \x17").1, "one ");
        assert_eq!(typed(b"one two\x15x").1, "x");
        assert_eq!(typed(b"\x7f\x17\x15").1, "");
    }

    #[test]
    fn keys_that_do_nothing_leave_nothing_behind() {
        assert_eq!(typed(b"a\x1b[A\x1b[1;5C\x1bOP\x1bx\x04\x01b").1, "ab");
        assert_eq!(typed(b"a\xff\xfeb").1, "ab");
        let endless = [b"\x1b[".as_slice(), &[b'1'; 100], b"x"].concat();
        assert!(typed(&endless).1.ends_with('x'));
    }

    #[test]
    fn it_does_not_matter_how_the_bytes_are_cut() {
        let bytes = "grüße\x1b[200~x\ny\x1b[201~ 語\x1b[Az\n".as_bytes();
        for cut in 0..=bytes.len() {
            let mut draft = Draft::default();
            let mut lines = draft.take_in(&bytes[..cut]);
            lines.extend(draft.take_in(&bytes[cut..]));
            assert_eq!(lines, ["grüßex\ny 語z"], "cut at {cut}");
        }
    }
}
