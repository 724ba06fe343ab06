//! Letters that nobody sees, made visible.
//!
//! Control characters become their pictures, so that terminal sequences are text and nothing else. What
//! hides, or changes the direction of its neighbours, becomes its number: a text cannot look like another.

use std::borrow::Cow;

/// Returns a text in which everything can be seen. Line breaks and tabs stay.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(must_be_shown) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' if letters.peek() == Some(&'\n') => {}
            letter if must_be_shown(letter) => show(letter, &mut out),
            letter => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// Returns a text on one line in which everything can be seen.
pub(super) fn visible_line(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn must_be_shown(letter: char) -> bool {
    // Direction: marks, embeddings, overrides, isolates.
    let turns = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    // Without width: spaces, operators, tags. The joiners stay: scripts and emoji need them.
    let hides = matches!(
        letter,
        '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    );
    let breaks = matches!(letter, '\u{2028}' | '\u{2029}');
    let controls = letter.is_control() && !matches!(letter, '\n' | '\t');
    turns || hides || breaks || controls
}

fn show(letter: char, out: &mut String) {
    let picture = match letter {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(letter)),
        '\u{7f}' => Some('\u{2421}'),
        _ => None,
    };
    match picture {
        Some(picture) => out.push(picture),
        None => out.push_str(&format!("⟨U+{:04X}⟩", u32::from(letter))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_shown() {
        assert_eq!(visible("a\u{1b}[2J\0\u{7f}\u{9b}"), "a␛[2J␀␡⟨U+009B⟩");
        assert_eq!(visible("rm \u{202e}txt.a\u{2066}"), "rm ⟨U+202E⟩txt.a⟨U+2066⟩");
        assert_eq!(visible("a\u{200b}b\u{e0041}"), "a⟨U+200B⟩b⟨U+E0041⟩");
    }

    #[test]
    fn what_can_be_read_stays() {
        for text in ["שלום été\n\t", "👩\u{200d}🚀", "", "漢字"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
        assert_eq!(visible("a\r\nb\rc"), "a\nb␍c");
        assert_eq!(visible_line(" a\r\n  b\tc "), "a b c");
    }
}
