//! Tokens of the services that a maintained rule set knows.

use std::sync::OnceLock;

use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use super::token::{is_example, is_word_byte, secret};
use super::{End, Left, Shape, Test, Verdict};

/// Name, fixed beginning and regular expression of each token, separated by tabs. Made by
/// `data/update-secret-shapes`, which says where the rules come from.
const RULES: &str = include_str!("../../../data/secret-shapes.tsv");
/// Bytes of the longest token that is looked at.
const LONGEST: usize = 2 * 1024;
/// Memory that one expression may take.
const MOST_MEMORY: usize = 1 << 20;

/// The expression of a token, compiled when its beginning is first met.
pub(super) struct Rule {
    pattern: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

/// The shapes of the rule set.
pub(super) fn shapes() -> impl Iterator<Item = Shape> {
    RULES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut fields = line.split('\t');
        let (kind, prefix, pattern) = (fields.next()?, fields.next()?, fields.next()?);
        let rule = Rule { pattern, compiled: OnceLock::new() };
        Some(Shape { prefix, kind, left: Left::NoWord, test: Test::Rule(Box::new(rule)) })
    })
}

impl Rule {
    /// Judges the token that begins at a place.
    pub(super) fn judge(&self, kind: &'static str, text: &str, place: usize, end: End) -> Verdict {
        let rest = text.as_bytes().get(place..).unwrap_or_default();
        let is_over = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`<>(){}[],;".contains(byte);
        let run = rest.iter().take(LONGEST).position(is_over);
        if run.is_none() && rest.len() < LONGEST && end == End::Later {
            return Verdict::More;
        }
        let Some(regex) = self.compiled.get_or_init(|| compile(self.pattern)) else {
            return Verdict::No;
        };
        let upto = place + rest.len().min(LONGEST);
        let input = Input::new(text).range(place..upto).anchored(Anchored::Yes);
        let Some(found) = regex.find(input) else { return Verdict::No };
        let token = text.as_bytes().get(found.range()).unwrap_or_default();
        let goes_on = text.as_bytes().get(found.end()).is_some_and(|byte| is_word_byte(*byte));
        if goes_on || is_example(token) || !text.is_char_boundary(found.end()) {
            return Verdict::No;
        }
        secret(kind, text, found.range())
    }
}

fn compile(pattern: &str) -> Option<Regex> {
    let config = Config::new().nfa_size_limit(Some(MOST_MEMORY)).utf8_empty(false);
    let bytes = syntax::Config::new().unicode(false).utf8(false);
    Regex::builder().configure(config).syntax(bytes).build(pattern).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles_and_begins_with_its_prefix() {
        let mut count = 0;
        for shape in shapes() {
            let Test::Rule(rule) = &shape.test else { unreachable!() };
            assert!(compile(rule.pattern).is_some(), "{}: {}", shape.kind, rule.pattern);
            assert!(shape.prefix.len() >= 3, "{}", shape.kind);
            count += 1;
        }
        assert!(count > 200, "{count}");
    }
}
