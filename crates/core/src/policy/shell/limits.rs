//! How much of a command line is looked at.
//!
//! The parser is recursive: text that nests too deeply would take all of its stack, and some nestings
//! take it a time that doubles with every level. Such text is recognised before it gets there.

/// The longest line that is parsed.
const MAX_BYTES: usize = 16 * 1024;
/// The deepest nesting of brackets.
const MAX_DEPTH: usize = 8;
/// How many words that open something.
const MAX_OPENING: usize = 24;
/// How deep lines are found within lines.
pub(super) const MAX_LINES: usize = 6;
/// How many commands one line may have.
pub(super) const MAX_COMMANDS: usize = 200;

/// Says why a text is not parsed, if it is not.
pub(super) fn too_much(text: &str) -> Option<&'static str> {
    if text.len() > MAX_BYTES {
        return Some("it is too long");
    }
    if text.chars().any(is_odd) {
        return Some("it contains characters that shells read differently");
    }
    (depth(text) > MAX_DEPTH || opening(text) > MAX_OPENING).then_some("it is nested too deeply")
}

/// Control characters, and spaces that are not the shell's own.
fn is_odd(character: char) -> bool {
    (character.is_control() && !matches!(character, '\n' | '\t'))
        || (character.is_whitespace() && !character.is_ascii())
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Returns how deeply brackets nest, whatever they mean: quotes are not looked at, which can only
/// make it more.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for character in text.chars() {
        match character {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn opening(text: &str) -> usize {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric());
    let keywords = ["if", "while", "until", "for", "case", "select", "function", "coproc"];
    let opened = words.filter(|word| keywords.contains(word)).count();
    opened + text.matches('`').count() + text.matches("[[").count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_parsed() {
        for text in ["", "ls -la | sort", "a \"b c\" 'd'\n\te", "echo é 日本", "((1+2))"] {
            assert_eq!(too_much(text), None, "{text}");
        }
    }

    #[test]
    fn text_that_would_take_the_parser_down_is_not() {
        for text in [
            "(".repeat(9),
            "$(".repeat(1_000),
            "`".repeat(25),
            "if ".repeat(25),
            "x".repeat(20_000),
            "ls\u{a0}x".into(),
            "ls\rx".into(),
            "a\0b".into(),
        ] {
            assert!(too_much(&text).is_some(), "{text:.20}");
        }
    }
}
