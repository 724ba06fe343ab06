//! Names and ids that a provider takes back.
//!
//! A model may ask for a tool by a name that no provider accepts in a conversation, and an id may come
//! from a provider with other rules. Sent back as it is, one such name has every further request of the
//! conversation refused. So names and ids that are not plain are written in another way, always in
//! the same one: the same conversation must give the same bytes.

use std::borrow::Cow;

/// The longest name that all providers take.
const LONGEST_NAME: usize = 64;

/// What a shortened text ends with: a line and the number of the whole text.
const TAIL: usize = 17;

/// Returns the name of a call as it is sent back: at most 64 letters, digits, `_` and `-`, of which the
/// first is a letter or `_`. The name of every tool there is passes unchanged.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return text(name, LONGEST_NAME);
    }
    Cow::Owned(text(&format!("_{name}"), LONGEST_NAME).into_owned())
}

/// Returns a text of letters, digits, `_` and `-` that is not longer than allowed. A text that is like
/// that already passes unchanged; in others, whatever else they have is written as its number. What is
/// too long ends with a number that follows from the whole, so that two of them stay two.
pub(super) fn text(text: &str, longest: usize) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if text.len() <= longest && text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len().min(longest) + 8);
    for byte in text.bytes() {
        if is_plain(byte) {
            plain.push(char::from(byte));
        } else {
            plain.push_str(&format!("_{byte:02x}"));
        }
        if plain.len() > longest {
            plain.truncate(longest.saturating_sub(TAIL));
            plain.push_str(&format!("_{:016x}", number(text)));
            break;
        }
    }
    Cow::Owned(plain)
}

/// Returns a number for a text, the same on every machine and in every version (FNV-1a).
fn number(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |number, byte| {
        (number ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_provider_takes_are_written_in_another_way() {
        for (name, sent) in [
            ("read_file", "read_file"),
            ("_x-1", "_x-1"),
            ("functions.read_file", "functions_2eread_file"),
            ("read file", "read_20file"),
            ("", "_"),
            ("1st", "_1st"),
            ("-x", "_-x"),
            ("é", "__c3_a9"),
        ] {
            assert_eq!(tool_name(name), sent, "{name}");
        }
    }

    #[test]
    fn long_ones_are_cut_and_stay_different() {
        let long = "n".repeat(64);
        assert_eq!(tool_name(&long), long);
        for one in ["n".repeat(65), "n.".repeat(500), "é".repeat(30), "9".repeat(64)] {
            let (sent, other) = (tool_name(&one), format!("{one}x"));
            assert_eq!(sent.len(), 64, "{sent}");
            assert_ne!(sent, tool_name(&other));
            assert_eq!(sent, tool_name(&one));
            assert_eq!(sent, tool_name(&sent), "{sent} is plain");
        }
        assert_eq!(text("call_with_an_id_that_is_rather_long_for_it", 40).len(), 40);
    }

    #[test]
    fn the_number_of_a_text_never_changes() {
        assert_eq!(number(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(number("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
