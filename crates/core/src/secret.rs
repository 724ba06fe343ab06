//! Values that nobody is to see, and the names that stand for them.
//!
//! A secret that turns up in an answer of a model, in the output of a tool or in an error is replaced by
//! its name before anybody sees it: the run, the journal, the terminal, the model. The same secret has
//! the same name every time, so a conversation with names in it stays what it was.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use crate::event::EventBody;

/// A shorter value could stand anywhere by chance.
const MIN_BYTES: usize = 8;

/// The secrets of a run. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrets(Option<Arc<Known>>);

struct Known {
    /// Finds values, as they are and as they are written in JSON.
    finder: AhoCorasick,
    /// What stands for the value of each pattern.
    names: Vec<String>,
}

impl Secrets {
    /// Takes names and values. Values that are too short to be told from other text are left out.
    pub fn new<N: AsRef<str>, V: AsRef<str>>(secrets: impl IntoIterator<Item = (N, V)>) -> Self {
        let (mut patterns, mut names) = (Vec::new(), Vec::new());
        for (name, value) in secrets {
            let (name, value) = (name.as_ref(), value.as_ref().trim());
            if value.len() < MIN_BYTES {
                continue;
            }
            let escaped = Value::from(value).to_string();
            let escaped = escaped.trim_matches('"');
            for pattern in std::iter::once(value).chain((escaped != value).then_some(escaped)) {
                patterns.push(pattern.to_owned());
                names.push(format!("[secret {name}]"));
            }
        }
        if patterns.is_empty() {
            return Self::default();
        }
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
        Self(finder.ok().map(|finder| Arc::new(Known { finder, names })))
    }

    /// Tells whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Puts names in the place of secrets.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.0 {
            Some(known) if known.finder.is_match(text) => {
                known.finder.replace_all(text, &known.names).into()
            }
            _ => text.into(),
        }
    }

    /// Puts names in the place of secrets everywhere in an event.
    pub fn hide_in(&self, body: EventBody) -> EventBody {
        let Some(known) = &self.0 else { return body };
        let Ok(json) = serde_json::to_vec(&body) else { return body };
        if !known.finder.is_match(&json) {
            return body;
        }
        let hidden = serde_json::from_slice(&json).map(|value| self.hide_in_value(value));
        hidden.and_then(serde_json::from_value).unwrap_or_else(|_| EventBody::Error {
            message: "something happened that cannot be shown, since a secret is part of it".into(),
        })
    }

    /// Puts names in the place of secrets everywhere in a value.
    pub fn hide_in_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.hide(&text).into_owned()),
            Value::Array(items) => items.into_iter().map(|item| self.hide_in_value(item)).collect(),
            Value::Object(fields) => fields
                .into_iter()
                .map(|(key, value)| (self.hide(&key).into_owned(), self.hide_in_value(value)))
                .collect(),
            other => other,
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.as_ref().map(|known| known.names.as_slice()).unwrap_or_default();
        formatter.debug_tuple("Secrets").field(&names).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::message::Part;
    use crate::time::Millis;

    fn secrets() -> Secrets {
        Secrets::new([
            ("KEY", "sk-0123456789"),
            ("LONGER", "sk-0123456789-and-more"),
            ("QUOTED", "pass\"word\\1"),
            ("SHORT", "abc"),
        ])
    }

    #[test]
    fn the_longest_secret_is_hidden_and_short_ones_are_none() {
        let hide = |text: &'static str| secrets().hide(text).into_owned();
        assert_eq!(hide("a sk-0123456789 b"), "a [secret KEY] b");
        assert_eq!(hide("sk-0123456789-and-more"), "[secret LONGER]");
        assert_eq!(hide("abc sk-01234"), "abc sk-01234");
        assert_eq!(format!("{:?}", Secrets::default()), "Secrets([])");
        assert!(!format!("{:?}", secrets()).contains("0123456789"));
    }

    #[test]
    fn an_event_is_hidden_in_all_its_parts() {
        let body = EventBody::ToolCallCompleted {
            tool_name: "t".into(),
            result: Arc::new(json!({ "sk-0123456789": ["pass\"word\\1", 7] })),
            content: vec![Part::text("it is sk-0123456789.")],
            display: None,
            duration_ms: Millis::default(),
        };
        let hidden = secrets().hide_in(body.clone());
        let EventBody::ToolCallCompleted { result, content, .. } = &hidden else { unreachable!() };
        assert_eq!(**result, json!({ "[secret KEY]": ["[secret QUOTED]", 7] }));
        assert_eq!(content, &[Part::text("it is [secret KEY].")]);
        assert_eq!(secrets().hide_in(hidden.clone()), hidden, "hiding twice changes nothing");
        assert_eq!(Secrets::default().hide_in(body.clone()), body);
    }
}
