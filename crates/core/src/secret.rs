//! Values that nobody is to see, and the names that stand for them.
//!
//! A secret that turns up in an answer of a model, in the output of a tool or in an error is replaced by
//! its name before anybody sees it: the run, the journal, the terminal, the model. The same secret has
//! the same name every time, so a conversation with names in it stays what it was. A tool that is called
//! with a name gets the secret, but only one that tools came across before: a model that makes up a name
//! learns nothing by it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// Finds names.
    reverse: AhoCorasick,
    values: Vec<Held>,
}

/// A secret, by its name.
struct Held {
    text: String,
    /// Whether a tool came across it: then tools have it already.
    seen: AtomicBool,
}

impl Secrets {
    /// Takes names and values. Values that could be words of any text are left out.
    pub fn new<N: AsRef<str>, V: AsRef<str>>(secrets: impl IntoIterator<Item = (N, V)>) -> Self {
        let (mut patterns, mut names) = (Vec::new(), Vec::new());
        let (mut known, mut values) = (Vec::<String>::new(), Vec::new());
        for (name, value) in secrets {
            let (name, value) = (format!("[secret {}]", name.as_ref()), value.as_ref().trim());
            if value.len() < MIN_BYTES || is_a_word(value) {
                continue;
            }
            let escaped = Value::from(value).to_string();
            let escaped = escaped.trim_matches('"');
            for pattern in std::iter::once(value).chain((escaped != value).then_some(escaped)) {
                patterns.push(pattern.to_owned());
                names.push(name.clone());
            }
            known.push(name);
            values.push(Held { text: value.to_owned(), seen: AtomicBool::new(false) });
        }
        if patterns.is_empty() {
            return Self::default();
        }
        let finder = |patterns: &[String]| {
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(patterns).ok()
        };
        let made = finder(&patterns).zip(finder(&known));
        Self(made.map(|(finder, reverse)| Arc::new(Known { finder, names, reverse, values })))
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
    ///
    /// # Errors
    ///
    /// Returns what is left of it where a secret is part of what makes it that event, so that it cannot
    /// be told without the secret.
    pub fn hide_in(&self, body: EventBody) -> Result<EventBody, String> {
        let Some(known) = &self.0 else { return Ok(body) };
        let found = |value: &Value| known.finder.is_match(&value.to_string());
        let Ok(mut value) = serde_json::to_value(&body) else { return Ok(body) };
        if !found(&value) {
            return Ok(body);
        }
        if let Some(data) = value.get_mut("data") {
            *data = self.hide_in_value(data.take());
        }
        let hidden: Result<EventBody, _> = serde_json::from_value(value);
        let hidden = hidden.map_err(|error| format!("a secret is part of it ({error})"))?;
        if hidden.ends_call() {
            self.note(&serde_json::to_string(&hidden).unwrap_or_default());
        }
        Ok(hidden)
    }

    /// Takes note of the secrets whose names stand in what a tool said: tools have them.
    pub fn note(&self, text: &str) {
        let Some(known) = &self.0 else { return };
        for found in known.reverse.find_iter(text) {
            if let Some(value) = known.values.get(found.pattern().as_usize()) {
                value.seen.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Puts names in the place of secrets everywhere in a value. Keys stay what they are.
    pub fn hide_in_value(&self, value: Value) -> Value {
        map_texts(value, &|text| self.hide(&text).into_owned())
    }

    /// Puts secrets in the place of their names: those that tools came across, and no others. Returns the
    /// name of one that may not be known.
    pub fn reveal_in_value(&self, value: Value) -> Result<Value, String> {
        let Some(known) = &self.0 else { return Ok(value) };
        let text = value.to_string();
        let unseen = known.reverse.find_iter(&text).find_map(|found| {
            let value = known.values.get(found.pattern().as_usize())?;
            let name = text.get(found.start()..found.end())?;
            (!value.seen.load(Ordering::Relaxed)).then(|| name.to_owned())
        });
        if let Some(name) = unseen {
            return Err(name);
        }
        let texts: Vec<&str> = known.values.iter().map(|value| value.text.as_str()).collect();
        Ok(map_texts(value, &|text| known.reverse.replace_all(&text, &texts)))
    }

    /// Returns the name of a secret that stands in a value.
    pub fn named_in(&self, value: &Value) -> Option<String> {
        let known = self.0.as_ref()?;
        let text = value.to_string();
        let found = known.reverse.find(&text)?;
        text.get(found.start()..found.end()).map(str::to_owned)
    }
}

fn map_texts(value: Value, change: &impl Fn(String) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => items.into_iter().map(|item| map_texts(item, change)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, map_texts(value, change))).collect()
        }
        other => other,
    }
}

/// A short word of small letters would be found in what is no secret.
fn is_a_word(value: &str) -> bool {
    value.len() < 16 && value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
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
            result: Arc::new(json!({ "sk-key": ["pass\"word\\1", 7] })),
            content: vec![Part::text("it is sk-0123456789.")],
            display: None,
            duration_ms: Millis::default(),
        };
        let hidden = secrets().hide_in(body.clone()).unwrap();
        let EventBody::ToolCallCompleted { result, content, .. } = &hidden else { unreachable!() };
        assert_eq!(**result, json!({ "sk-key": ["[secret QUOTED]", 7] }));
        assert_eq!(content, &[Part::text("it is [secret KEY].")]);
        assert_eq!(
            secrets().hide_in(hidden.clone()).unwrap(),
            hidden,
            "hiding twice changes nothing"
        );
        assert_eq!(Secrets::default().hide_in(body.clone()).unwrap(), body);
    }

    #[test]
    fn only_what_tools_came_across_is_given_back_to_them() {
        let secrets = secrets();
        let named = json!({ "text": "[secret KEY]" });
        assert_eq!(secrets.reveal_in_value(named.clone()), Err("[secret KEY]".to_owned()));
        assert_eq!(secrets.named_in(&named).as_deref(), Some("[secret KEY]"));
        let body = EventBody::ToolCallCompleted {
            tool_name: "t".into(),
            result: Arc::new(json!("sk-0123456789")),
            content: vec![],
            display: None,
            duration_ms: Millis::default(),
        };
        secrets.hide_in(body).unwrap();
        assert_eq!(secrets.reveal_in_value(named), Ok(json!({ "text": "sk-0123456789" })));
        let other = json!("[secret LONGER]");
        assert_eq!(secrets.reveal_in_value(other), Err("[secret LONGER]".to_owned()));
        assert_eq!(secrets.reveal_in_value(json!([1, "x"])), Ok(json!([1, "x"])));
    }

    #[test]
    fn a_word_of_ours_is_no_secret() {
        let secrets = Secrets::new([("PASSWORD", "assistant")]);
        assert!(secrets.is_empty());
    }
}
