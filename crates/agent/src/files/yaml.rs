//! YAML into a tree that knows the line of every key and value, and the order of keys.
//!
//! The reader is strict where YAML is generous: only `true` and `false` are truth values, a key may appear
//! once, and there is one document. Depth, size and the expansion of aliases are bounded.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{
    DuplicateKeyPolicy, Error, MessageFormatter, Options, Spanned, UserMessageFormatter,
};

use super::note::{Finding, Findings};

/// A value with its line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) line: u64,
    pub(super) body: Body,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: u64,
    pub(super) node: Node,
}

impl Node {
    /// Returns it as JSON.
    pub(super) fn value(&self) -> Value {
        match &self.body {
            Body::Scalar(value) => value.clone(),
            Body::List(items) => items.iter().map(Self::value).collect(),
            Body::Map(entries) => {
                let pair = |entry: &Entry| (entry.key.clone(), entry.node.value());
                Value::Object(entries.iter().map(pair).collect::<Map<_, _>>())
            }
        }
    }

    /// Returns its text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.body {
            Body::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Tells whether nothing is said.
    pub(super) fn is_null(&self) -> bool {
        matches!(self.body, Body::Scalar(Value::Null))
    }

    /// Shows it for people, in short.
    pub(super) fn shown(&self) -> String {
        const MAX_CHARACTERS: usize = 60;
        let text = match &self.body {
            Body::Scalar(Value::String(text)) => text.clone(),
            _ => self.value().to_string(),
        };
        let line = text.lines().next().unwrap_or_default();
        let cut: String = line.chars().take(MAX_CHARACTERS).collect();
        if cut.len() < text.len() { format!("`{cut}…`") } else { format!("`{cut}`") }
    }
}

/// Reads a mapping. An empty text is an empty one. A key that appears twice is a problem, and the first one is
/// read, so that whatever else is wrong can be said as well.
pub(super) fn parse(text: &str, findings: &mut Findings) -> Result<Vec<Entry>, Finding> {
    let read = |options| serde_saphyr::from_str_with_options::<Node>(text, options);
    let node = read(options()).or_else(|error| {
        let found = finding(&error);
        if !matches!(error.without_snippet(), Error::DuplicateMappingKey { .. }) {
            return Err(found);
        }
        let mut generous = options();
        generous.duplicate_keys = DuplicateKeyPolicy::FirstWins;
        let node = read(generous).map_err(|error| finding(&error))?;
        findings.problems.push(found);
        Ok(node)
    })?;
    match node.body {
        Body::Map(entries) => Ok(entries),
        Body::Scalar(Value::Null) => Ok(Vec::new()),
        _ => Err(Finding::of_line(
            node.line.max(1),
            "expected keys and values, such as `description: Reviews code`",
        )),
    }
}

fn options() -> Options {
    serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_depth: 64,
            max_nodes: 50_000,
            max_events: 150_000,
            max_aliases: 1_000,
            max_recorded_anchor_events: 50_000,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 50_000 },
    }
}

const TOO_LARGE: &str =
    "it is too large once its aliases are filled in, or too deep; write it shorter";

fn finding(error: &Error) -> Finding {
    let line = error.location().map(|location| location.line()).filter(|line| *line > 0);
    let message = match error.without_snippet() {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{key}` appears twice; keep one of them")
        }
        Error::MultipleDocuments { .. } => "expected one document, found a second `---`".to_owned(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias refers to the value it is part of".to_owned()
        }
        Error::Budget { .. } | Error::AliasReplayLimitExceeded { .. } => TOO_LARGE.to_owned(),
        other => match UserMessageFormatter.format_message(other) {
            // Met while an alias is filled in, it comes as a text.
            said if said.contains("breached: ") => TOO_LARGE.to_owned(),
            said => format!(
                "not valid YAML: {said}; a text with `: `, `#` or quotes in it has to be in quotes"
            ),
        },
    };
    Finding { line, key: None, message }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Body>::deserialize(deserializer)?;
        Ok(Self { line: spanned.referenced.line(), body: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BodyVisitor)
    }
}

struct BodyVisitor;

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = Body;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Body, E> {
        Ok(Body::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Body, E> {
        Ok(Body::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Body, E> {
        Ok(Body::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Body, E> {
        Ok(Body::Scalar(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Body, E> {
        // `5e3` is a whole number, however it is written.
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
        let number = if value.fract() == 0.0 && value.abs() < 1e15 {
            Number::from(value as i64)
        } else {
            Number::from_f64(value).ok_or_else(|| E::custom("not a finite number"))?
        };
        Ok(Body::Scalar(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Body, E> {
        Ok(Body::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Body, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Body::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Body, A::Error> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some((key, node)) = access.next_entry::<Spanned<String>, Node>()? {
            if entries.iter().any(|entry| entry.key == key.value) {
                return Err(A::Error::custom("a key appears twice in one mapping"));
            }
            entries.push(Entry { key: key.value, line: key.referenced.line(), node });
        }
        Ok(Body::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Reads a text that has no mistakes, or returns the first.
    fn read(text: &str) -> Result<Vec<Entry>, Finding> {
        let mut findings = Findings::default();
        let entries = parse(text, &mut findings)?;
        findings.problems.pop().map_or(Ok(entries), Err)
    }

    #[test]
    fn keys_keep_their_order_and_lines() {
        let entries = read("\nb: 1\na:\n  y: [1, two]\n  x: true\n").unwrap();
        let keys: Vec<(&str, u64)> =
            entries.iter().map(|entry| (entry.key.as_str(), entry.line)).collect();
        assert_eq!(keys, [("b", 2), ("a", 3)]);
        let Body::Map(inner) = &entries[1].node.body else { panic!("a mapping") };
        assert_eq!((inner[0].key.as_str(), inner[0].line), ("y", 4));
        assert_eq!(inner[0].node.value(), json!([1, "two"]));
        assert_eq!(inner[1].node.line, 5);
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, line, message) in [
            ("a: 1\nb: 2\na: 3\n", Some(3), "the key `a` appears twice"),
            ("a: 1\nb: [1\n", None, "not valid YAML"),
            ("\n\n- a\n", Some(3), "expected keys and values"),
            ("just text", Some(1), "expected keys and values"),
            ("a: b: c\n", None, "has to be in quotes"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.message.contains(message), "{text:?}: {found:?}");
            if line.is_some() {
                assert_eq!(found.line, line, "{text:?}: {found:?}");
            }
        }
        assert_eq!(read("").unwrap(), []);
        assert_eq!(read("# nothing\n").unwrap(), []);
    }

    #[test]
    fn a_key_that_appears_twice_does_not_hide_the_rest() {
        let mut findings = Findings::default();
        let entries = parse("a: 1\na: 2\nb: 3\n", &mut findings).unwrap();
        let read: Vec<(&str, Value)> =
            entries.iter().map(|entry| (entry.key.as_str(), entry.node.value())).collect();
        assert_eq!(read, [("a", json!(1)), ("b", json!(3))]);
        assert_eq!(findings.problems[0].line, Some(2));
    }

    #[test]
    fn a_bomb_is_refused() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let items = vec![format!("*a{}", level - 1); 9].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        let refused = read(&text).unwrap_err().message;
        assert!(refused.starts_with("it is too large"), "{refused}");
        let deep = format!("a: {}{}", "[".repeat(500), "]".repeat(500));
        assert!(read(&deep).is_err());
        let named = read("a: *budget\n").unwrap_err().message;
        assert!(!named.starts_with("it is too large"), "a word of its own is no bomb: {named}");
    }
}
