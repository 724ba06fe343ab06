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
    if text.contains("${") && expands_more(text) || text.contains("((") && counts_more(text) {
        return Some("something in it looks like a comment or a here-document");
    }
    (depth(text) > MAX_DEPTH || opening(text) > MAX_OPENING).then_some("it is nested too deeply")
}

/// Control characters, and spaces that are not the shell's own.
fn is_odd(character: char) -> bool {
    (character.is_control() && !matches!(character, '\n' | '\t'))
        || (character.is_whitespace() && !character.is_ascii())
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Tells whether `<<` or `#` may stand within `${…}`, where the parser takes it for a here-document or a
/// comment, and loses what follows. Quotes and escapes may hide where the expansion ends.
fn expands_more(text: &str) -> bool {
    let (mut depth, mut unsure, mut previous) = (0_usize, false, ' ');
    for character in text.chars() {
        match (previous, character) {
            ('$', '{') => depth += 1,
            (_, '}') => depth = depth.saturating_sub(1),
            ('<', '<') | (' ' | '\t' | '\n', '#') if depth > 0 || unsure => return true,
            (_, '\'' | '"' | '\\') if depth > 0 => unsure = true,
            _ => {}
        }
        previous = character;
    }
    false
}

/// Tells whether `#` or a substitution stands within `((…))`: the parser takes the one for a comment, and the
/// whole for two subshells, where a shell evaluates it.
fn counts_more(text: &str) -> bool {
    let expressions = text.split("((").skip(1);
    expressions.into_iter().any(|rest| {
        rest.split("))").next().is_some_and(|text| {
            ['#', '`'].iter().any(|odd| text.contains(*odd)) || text.contains("$(")
        })
    })
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
        for text in [
            "",
            "echo $((1+2)) ${#x} ${x#y} # z",
            "cat <<E\n# a title\nE",
            "cat > ${x} <<E\n\"a\"\nE",
            "ls -la | sort",
            "a \"b c\" 'd'\n\te",
            "echo é 日本",
            "((1+2))",
        ] {
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
            "echo ${x:=cat <<E\n$(rm x)\nE}".into(),
            "((x='$(rm x)'; echo \"${x}\"))".into(),
            "echo $(( 1 # $(rm x)\n))".into(),
            "echo ${x:- # $(rm x)\n}".into(),
            "echo ${x:='}' cat <<E\n$(rm x)\nE}".into(),
        ] {
            assert!(too_much(&text).is_some(), "{text:.20}");
        }
    }
}
