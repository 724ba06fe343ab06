//! What people entered in the middle of a call and nobody else is to read: a result that repeats it has its name there
//! instead, and so have the next questions of the call and what it says of its progress.
//!
//! A password may be as short as a word, so a short one is hidden only in the result of the call that it was entered
//! for, and only where it is what something is: the whole of a value or of a text, what stands in quotes or behind a
//! colon. Many a server puts JSON into the middle of a sentence.

use std::fmt;
use std::ops::BitOr;
use std::sync::{Mutex, PoisonError};

use convoke_core::{CallId, Part, ToolError};
use serde_json::Value;

use crate::tool::{Content, ToolOutput};

/// How many are remembered.
const MOST: usize = 200;
/// What is at least so long, and not letters alone, is hidden wherever it stands.
const UNMISTAKABLE: usize = 8;
/// A number with fewer digits is as likely a count.
const SHORTEST_NUMBER: usize = 4;
/// What is shorter is hidden in a sentence only where it stands in quotes.
const SHORTEST_WORD: usize = 3;

/// What was entered in calls so far.
#[derive(Default)]
pub(crate) struct Entered(Mutex<Vec<Kept>>);

struct Kept {
    call: CallId,
    /// What stands for it.
    name: String,
    text: String,
    /// The same as it is written in JSON.
    quoted: String,
}

impl Entered {
    /// Remembers what was entered into a field, for as long as the run is worked on.
    pub(super) fn keep(&self, call: &CallId, field: &str, value: &Value) {
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            Value::Array(items) => {
                return items.iter().for_each(|item| self.keep(call, field, item));
            }
            Value::Null | Value::Bool(_) | Value::Object(_) => return,
        };
        if text.is_empty() {
            return;
        }
        let quoted = Value::from(text.as_str()).to_string();
        let name = format!("[secret {field}]");
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST {
            kept.remove(0);
        }
        kept.push(Kept { call: call.clone(), name, text, quoted });
    }

    /// Puts names in the place of what was entered, in all that is told of a call.
    pub(super) fn hide(
        &self,
        call: &CallId,
        output: &mut ToolOutput,
        mut error: Option<&mut ToolError>,
    ) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for one in kept.iter().filter(|one| one.is_hidden_in(call)) {
            one.hide_in(&mut output.value);
            if let Content::Parts(parts) = &mut output.content {
                for part in parts {
                    if let Part::Text { text } = part {
                        one.hide_in_text(text);
                    }
                }
            }
            if let Some(display) = &mut output.display {
                one.hide_in_text(&mut display.text);
            }
            if let Some(error) = error.as_deref_mut() {
                one.hide_in_text(&mut error.message);
                if let Some(details) = &mut error.details {
                    one.hide_in(details);
                }
                for cause in &mut error.causes {
                    one.hide_in_text(cause);
                }
            }
        }
    }

    /// Puts names in the place of what was entered, in something that a call says.
    pub(crate) fn hide_in_text(&self, call: &CallId, text: &mut String) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for one in kept.iter().filter(|one| one.is_hidden_in(call)) {
            one.hide_in_text(text);
        }
    }
}

impl Kept {
    fn is_hidden_in(&self, call: &CallId) -> bool {
        self.call == *call || self.is_unmistakable()
    }

    fn is_unmistakable(&self) -> bool {
        self.text.len() >= UNMISTAKABLE && !self.text.chars().all(char::is_alphabetic)
    }

    /// Hides it in a value, and tells whether it was there.
    fn hide_in(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.hide_in_text(text),
            Value::Number(number) => {
                let is_it = self.text.len() >= SHORTEST_NUMBER && number.to_string() == self.text;
                if is_it {
                    *value = Value::from(self.name.as_str());
                }
                is_it
            }
            Value::Array(items) => {
                items.iter_mut().map(|item| self.hide_in(item)).fold(false, BitOr::bitor)
            }
            Value::Object(fields) => {
                fields.values_mut().map(|item| self.hide_in(item)).fold(false, BitOr::bitor)
            }
            Value::Null | Value::Bool(_) => false,
        }
    }

    /// Hides it in a text, and tells whether it was there. Many a text is JSON, in which it is a value.
    fn hide_in_text(&self, text: &mut String) -> bool {
        let is_there = text.contains(&self.text);
        if is_there && self.is_unmistakable() {
            *text = text.replace(&self.text, &self.name);
            return true;
        }
        if is_there && text.trim() == self.text {
            text.clone_from(&self.name);
            return true;
        }
        if !is_there && !text.contains(self.escaped()) {
            return false;
        }
        let begins_as_json = text.trim_start().starts_with(['{', '[']);
        let value = begins_as_json.then(|| serde_json::from_str::<Value>(text).ok()).flatten();
        let Some(mut value) = value else { return self.hide_words_in(text) };
        let found = self.hide_in(&mut value);
        if found {
            *text = if text.contains('\n') { format!("{value:#}") } else { value.to_string() };
        }
        found
    }

    /// Hides it in a sentence, as it is and as it is written in JSON, and tells whether it was there.
    fn hide_words_in(&self, text: &mut String) -> bool {
        let escaped = Some(self.escaped()).filter(|escaped| *escaped != self.text);
        let mut found = false;
        for word in std::iter::once(self.text.as_str()).chain(escaped) {
            if let Some(shown) = without_word(text, word, &self.name) {
                *text = shown;
                found = true;
            }
        }
        found
    }

    /// Returns it as it is written in JSON, without the quotes around it.
    fn escaped(&self) -> &str {
        let inner = self.quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inner.unwrap_or(&self.text)
    }
}

/// Returns a text with a name in every place where a word is what something is; nothing, where there is no such place.
fn without_word(text: &str, word: &str, name: &str) -> Option<String> {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    let mut taken = 0;
    for (at, _) in text.match_indices(word) {
        let (before, from) = text.split_at_checked(at)?;
        let (_, after) = from.split_at_checked(word.len())?;
        if stands_out(before, word, after) {
            shown.push_str(before.get(taken..)?);
            shown.push_str(name);
            taken = at + word.len();
            rest = after;
        }
    }
    shown.push_str(rest);
    (taken > 0).then_some(shown)
}

/// Tells whether a word between two pieces of a text is what something is there.
fn stands_out(before: &str, word: &str, after: &str) -> bool {
    let quote = before.chars().next_back().filter(|letter| matches!(letter, '"' | '\'' | '`'));
    // In JSON that stands in JSON, quotes are escaped.
    let closed = quote.and_then(|quote| after.trim_start_matches('\\').strip_prefix(quote));
    if let Some(after) = closed {
        let is_key = after.trim_start().starts_with(':');
        return !is_key;
    }
    let goes_on = |letter: char| letter.is_alphanumeric() || letter == '_';
    if before.ends_with(goes_on) || after.starts_with(goes_on) {
        return false;
    }
    let is_number = word.chars().all(|letter| letter.is_ascii_digit());
    let shortest = if is_number { SHORTEST_NUMBER } else { SHORTEST_WORD };
    if word.len() < shortest {
        return false;
    }
    // Nobody writes a PIN by chance, but many a word.
    let is_common = word.chars().all(char::is_alphabetic) || word.len() < SHORTEST_NUMBER;
    !is_common || before.trim_end().ends_with([':', '='])
}

/// What was entered is not shown.
impl fmt::Debug for Entered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        formatter.debug_struct("Entered").field("count", &count).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(entered: &Entered, call: &str, value: Value) -> Value {
        let mut output = ToolOutput::new(value);
        entered.hide(&CallId::new(call), &mut output, None);
        output.value
    }

    /// Regression: what was shorter than a token went to the model and to the journal.
    #[test]
    fn a_short_secret_is_hidden_where_it_is_all_there_is() {
        let entered = Entered::default();
        let call = CallId::new("c");
        entered.keep(&call, "password", &json!("abc"));
        entered.keep(&call, "pin", &json!(4711));
        entered.keep(&call, "digit", &json!(1));
        let said =
            json!({ "password": "abc", "abc": 1, "pin": 4711, "all": ["the abc", " abc\n"] });
        let shown = json!({ "password": "[secret password]", "abc": 1, "pin": "[secret pin]",
            "all": ["the abc", "[secret password]"] });
        assert_eq!(told(&entered, "c", said.clone()), shown);
        assert_eq!(told(&entered, "other", said.clone()), said, "it was not entered there");
        let text = told(&entered, "c", json!(said.to_string()));
        assert_eq!(serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap(), shown);
        assert_eq!(told(&entered, "c", json!("{ abc }")), json!("{ abc }"), "no JSON");
    }

    /// Regression: what servers say is seldom JSON from its first letter on.
    #[test]
    fn a_short_secret_is_hidden_in_a_sentence_where_it_is_what_something_is() {
        let hidden = |secret: &str, said: &str| {
            let entered = Entered::default();
            entered.keep(&CallId::new("c"), "password", &json!(secret));
            told(&entered, "c", json!(said)).as_str().unwrap().to_owned()
        };
        for (secret, said, shown) in [
            ("0815", r#"got: {"password": "0815"}"#, r#"got: {"password": "[secret password]"}"#),
            ("x", r#"got {"x": "x", "y": "xx"}"#, r#"got {"x": "[secret password]", "y": "xx"}"#),
            ("ab", r#"got {\"a\": \"ab\"}"#, r#"got {\"a\": \"[secret password]\"}"#),
            ("a\"b", r#"got "a\"b"."#, r#"got "[secret password]"."#),
            ("first", "the first pin=first", "the first pin=[secret password]"),
            ("4711", "4711 is right, 47112 is not", "[secret password] is right, 47112 is not"),
            ("12", "12 of 12: 12", "12 of 12: 12"),
        ] {
            assert_eq!(hidden(secret, said), shown, "{secret}");
        }
    }

    #[test]
    fn a_long_secret_is_hidden_wherever_it_stands() {
        let entered = Entered::default();
        let call = CallId::new("c");
        entered.keep(&call, "token", &json!("four-2-nine"));
        entered.keep(&call, "password", &json!("password"));
        let said = json!("the password is four-2-nine");
        assert_eq!(told(&entered, "other", said), json!("the password is [secret token]"));
        let mut output = ToolOutput::default().with_text("got four-2-nine");
        let mut error = ToolError::failed("no: four-2-nine").with_details(json!(["four-2-nine"]));
        entered.hide(&call, &mut output, Some(&mut error));
        let all = format!("{output:?} {error:?} {entered:?}");
        assert!(all.contains("[secret token]") && !all.contains("four-2-nine"), "{all}");
    }
}
