//! Texts with gaps: `${name}` is replaced by an input.
//!
//! A name is made of letters, digits and `_`; anything else after `${` is plain text, and `$${` is a
//! literal `${`. A text is taken apart once. What is put into a gap is never looked at again, so an input
//! that holds `${other}` stays as it is.

mod prompt;

use serde_json::{Map, Value};

pub use prompt::{Gap, PromptTemplate, Rendered, UnfilledGaps};

/// A text with gaps, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Gap { name: String, line: usize },
}

impl Template {
    /// Takes a text apart. Every text is a template; one without gaps stays as it is.
    pub fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let (mut rest, mut line) = (text, 1);
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            line += before.matches('\n').count();
            if let Some(after) = from.strip_prefix("$${") {
                plain.push_str("${");
                rest = after;
            } else if let Some((name, after)) = gap(from) {
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(Piece::Gap { name: name.to_owned(), line });
                rest = after;
            } else {
                plain.push('$');
                rest = from.get(1..).unwrap_or_default();
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Self { pieces }
    }

    /// Returns a text that, taken apart, is `text` and has no gaps.
    pub fn escape(text: &str) -> String {
        text.replace("${", "$${")
    }

    /// Returns the names of its gaps, each with its line, in order.
    pub fn gaps(&self) -> impl Iterator<Item = (&str, usize)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Gap { name, line } => Some((name.as_str(), *line)),
        })
    }

    /// Fills the gaps. One that has no value is left empty: whoever has to know asks
    /// [`gaps`](Self::gaps) first.
    pub fn fill(&self, values: &Map<String, Value>) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Gap { name, .. } => values.get(name).map(shown).unwrap_or_default(),
        });
        pieces.collect()
    }
}

/// Tells whether a text can be the name of a gap.
pub fn is_gap_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Reads a gap at the start of a text, and returns what follows it.
fn gap(text: &str) -> Option<(&str, &str)> {
    let (name, after) = text.strip_prefix("${")?.split_once('}')?;
    is_gap_name(name).then_some((name, after))
}

/// A text goes in as it is, anything else as JSON. Null is a value that was not given.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn filled(text: &str, values: Value) -> String {
        let Value::Object(values) = values else { panic!("values are an object") };
        Template::parse(text).fill(&values)
    }

    #[test]
    fn r207_gaps_are_filled_with_the_string_form_of_values() {
        for (text, expected) in [
            ("find ${what}", "find a cat"),
            ("${what}${what}", "a cata cat"),
            ("${n}, ${yes}, ${list}, ${none}.", "3, true, [\"x\",1], ."),
            ("$${what} is written ${what}", "${what} is written a cat"),
            ("$$${what}", "$${what}"),
            ("${}, ${a b}, ${what:-x}, ${what", "${}, ${a b}, ${what:-x}, ${what"),
            ("$what costs $5$", "$what costs $5$"),
            ("", ""),
        ] {
            let values =
                json!({ "what": "a cat", "n": 3, "yes": true, "list": ["x", 1], "none": null });
            assert_eq!(filled(text, values), expected, "{text}");
        }
    }

    #[test]
    fn what_is_put_in_is_not_read_again() {
        let values = json!({ "a": "${b} and $${b}", "b": "secret" });
        assert_eq!(filled("${a}", values), "${b} and $${b}");
    }

    #[test]
    fn gaps_know_their_lines() {
        let template = Template::parse("${a}\n\ntext $${x}\n${b} ${a}");
        assert_eq!(template.gaps().collect::<Vec<_>>(), [("a", 1), ("b", 4), ("a", 4)]);
    }

    proptest! {
        #[test]
        fn an_escaped_text_comes_back_as_it_was(text in "[${}a-c\n]{0,40}|\\PC{0,40}") {
            let template = Template::parse(&Template::escape(&text));
            prop_assert_eq!(template.gaps().count(), 0);
            prop_assert_eq!(template.fill(&Map::new()), text);
        }

        #[test]
        fn a_value_is_put_in_whole(value in "[${}a-c]{0,20}|\\PC{0,20}", before in "[a-z \n]{0,9}") {
            let values = json!({ "name": value.clone() });
            let text = format!("{before}${{name}}!");
            prop_assert_eq!(filled(&text, values), format!("{before}{value}!"));
        }

        #[test]
        fn any_text_can_be_taken_apart(text in "[${}_a1\n]{0,60}") {
            let template = Template::parse(&text);
            let lines = text.matches('\n').count() + 1;
            for (name, line) in template.gaps() {
                prop_assert!(is_gap_name(name) && line <= lines);
                let written = format!("${{{name}}}");
                prop_assert!(text.lines().nth(line - 1).is_some_and(|line| line.contains(&written)));
            }
        }
    }
}
