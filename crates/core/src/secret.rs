//! Values that nobody is to see, and the names that stand for them.
//!
//! A secret that turns up in an answer of a model, in the output of a tool or in an error is replaced by
//! its name before anybody sees it: the run, the journal, the terminal, the model. There are two kinds:
//!
//! - **Known** ones were handed in with a name: variables that look like credentials, settings that are
//!   marked as secret. They are found as they are, in JSON, percent-encoded, in hexadecimal, base64 and
//!   base32 (`form`), as numbers and keys of JSON, wrapped or laid out in a dump (`layout`), and with
//!   their characters escaped (`escape`).
//! - **Tokens** are found by their shape alone: keys of providers, private keys, passwords in addresses.
//!
//! The same secret has the same name every time, so a conversation with names in it stays what it was. A
//! tool that is called with a name gets the secret. Of the known ones it gets only those whose values stood
//! in what a tool said before: a name alone, made up by a model or written into a file, gives nothing. A
//! token is given back because it came up in the run, and is forgotten with the process: a run that is
//! resumed has to come across it again.

mod escape;
mod finder;
mod form;
mod found;
mod layout;
mod look;
mod shape;
mod stream;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use self::finder::{Finder, Found};
use self::found::Tokens;
use self::layout::Layout;
use self::shape::{End, Step};
pub use self::stream::Masker;
use crate::event::EventBody;
use crate::message::Message;

/// A shorter value could stand anywhere by chance.
const MIN_BYTES: usize = 8;
const OPENING: &str = "[secret ";
/// Ends the name of a secret in a dump or behind escapes.
const ENCODED: &str = ", encoded]";
/// No name is longer.
const LONGEST_NAME: usize = 256;

/// The secrets of a run. Cheap to clone; clones share what they come across.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    known: Option<Known>,
    found: Tokens,
    /// Names in the past of a resumed run whose values nobody knows any more.
    lost: Mutex<HashSet<String>>,
}

struct Known {
    /// Finds the forms of the values, which are its first words, and the anchors of their layouts.
    finder: Finder,
    /// The forms, by the number of their word.
    forms: Vec<Held>,
    /// The layouts of the word that comes after the forms and has this number, each with its form.
    anchors: Vec<Vec<(Layout, usize)>>,
    /// Bytes of the longest form.
    longest: usize,
    by_name: HashMap<String, usize>,
    /// Whether one of them is a number.
    has_numbers: bool,
}

/// A form of a secret.
struct Held {
    name: String,
    /// The name that stands for the form in a dump or behind escapes. Its text is not given back.
    encoded_name: String,
    text: String,
    /// Whether it stood in what a tool said: then tools have it already.
    seen: AtomicBool,
}

/// A secret in a text, and what stands for it.
struct Span {
    start: usize,
    end: usize,
    name: String,
}

/// An event without the secrets that stood in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hidden {
    /// The event.
    pub body: EventBody,
    /// The names of the known secrets whose values a tool said in it.
    pub secrets: BTreeSet<String>,
}

/// A name whose secret is not given back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Withheld {
    /// It may not be known here.
    #[error(
        "`{0}` stands for a secret that is not handed out here. Do it without the secret, or let a \
         person do it"
    )]
    Kept(String),
    /// The run was resumed, and the secret was forgotten.
    #[error(
        "`{0}` stands for a secret that was seen before the run was interrupted and is not known any \
         more. Read again where it stands, and use the name that is shown then; what was to be written \
         was not written"
    )]
    Forgotten(String),
}

/// Which parts of a value are changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Texts, keys and numbers.
    Everything,
    /// Texts.
    Texts,
}

/// Tells whether a token stands in a text that is known by its shape: a key of a provider, a password in an
/// address.
pub fn holds_token(text: &str) -> bool {
    matches!(shape::next(text, 0, End::Here), Step::Found(_))
}

impl Secrets {
    /// Takes names and values. Values that could be words of any text are left out.
    pub fn new<N: AsRef<str>, V: AsRef<str>>(secrets: impl IntoIterator<Item = (N, V)>) -> Self {
        let secrets: Vec<(String, String)> = secrets
            .into_iter()
            .map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().trim().to_owned()))
            .collect();
        // A value that is part of a name is none that anybody has to guess.
        let is_named = |value: &str| secrets.iter().any(|(name, _)| name.contains(value));
        let mut forms: Vec<Held> = Vec::new();
        let mut texts = HashSet::new();
        for (name, value) in &secrets {
            if value.len() < MIN_BYTES || is_a_word(value) || is_named(value) {
                continue;
            }
            for form in form::forms(value) {
                if texts.insert(form.text.clone()) {
                    let encoded_name = format!("{OPENING}{name}{ENCODED}");
                    let name = format!("{OPENING}{name}{}]", form.kind);
                    let seen = AtomicBool::new(false);
                    forms.push(Held { name, encoded_name, text: form.text, seen });
                }
            }
        }
        let known = (!forms.is_empty()).then(|| Known::new(forms));
        Self(Arc::new(Inner { known, ..Inner::default() }))
    }

    /// Tells whether none are known. Tokens are found all the same.
    pub fn is_empty(&self) -> bool {
        self.0.known.is_none()
    }

    /// Puts names in the place of secrets.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !self.stand_in(text) {
            return text.into();
        }
        let mut without_known = String::with_capacity(text.len());
        stream::pass(text, 0, &mut without_known, |text, from| {
            self.next_known(text, from, End::Here)
        });
        let mut without_escaped = String::with_capacity(without_known.len());
        stream::pass(&without_known, 0, &mut without_escaped, |text, from| {
            self.next_escaped(text, from, End::Here)
        });
        let mut without_any = String::with_capacity(without_escaped.len());
        stream::pass(&without_escaped, 0, &mut without_any, |text, from| {
            self.next_shaped(text, from, End::Here)
        });
        without_any.into()
    }

    /// Hides secrets in a text that comes in pieces.
    pub fn masker(&self) -> Masker {
        Masker::new(self.clone())
    }

    /// Tells whether a secret stands in a text.
    fn stand_in(&self, text: &str) -> bool {
        let holds = |step| matches!(step, Step::Found(_));
        text.len() >= MIN_BYTES
            && (holds(self.next_known(text, 0, End::Here))
                || holds_token(text)
                || holds(self.next_escaped(text, 0, End::Here)))
    }

    fn has_numbers(&self) -> bool {
        self.0.known.as_ref().is_some_and(|known| known.has_numbers)
    }

    fn is_known(&self, whole: &str) -> bool {
        self.known_name(whole).is_some()
    }

    fn known_name(&self, whole: &str) -> Option<&str> {
        let known = self.0.known.as_ref()?;
        let found = known.finder.find(whole.as_bytes(), 0)?;
        let is_whole = found.start == 0 && found.end == whole.len() && known.is_form(found.word);
        is_whole.then(|| known.name(found.word))
    }

    /// Puts names in the place of secrets everywhere in an event.
    ///
    /// # Errors
    ///
    /// Returns what is left of it where a secret is part of what makes it that event, so that it cannot
    /// be told without the secret.
    pub fn hide_in(&self, body: EventBody) -> Result<EventBody, String> {
        self.hide_and_note(body).map(|hidden| hidden.body)
    }

    /// Puts names in the place of secrets everywhere in an event, and tells which known ones a tool came
    /// across in it.
    ///
    /// # Errors
    ///
    /// As [`hide_in`](Self::hide_in).
    pub fn hide_and_note(&self, body: EventBody) -> Result<Hidden, String> {
        if !look::holds_secret(&body, self) {
            return Ok(Hidden { body, secrets: BTreeSet::new() });
        }
        let Ok(value) = serde_json::to_value(&body) else {
            return Ok(Hidden { body, secrets: BTreeSet::new() });
        };
        let mut secrets = BTreeSet::new();
        if body.is_said_by_a_tool() {
            self.find_known(&value, &mut secrets);
        }
        // A number or a key may be a part of the event that has to be what it is.
        let everything = self.hidden(value.clone(), Reach::Everything);
        let hidden = everything.or_else(|_| self.hidden(value, Reach::Texts));
        let body = hidden.map_err(|error| format!("a secret is part of it ({error})"))?;
        Ok(Hidden { body, secrets })
    }

    /// Collects the names of the known secrets whose values stand in a value.
    fn find_known(&self, value: &Value, names: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => self.find_known_in(text, names),
            Value::Array(items) => items.iter().for_each(|item| self.find_known(item, names)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.find_known_in(key, names);
                    self.find_known(value, names);
                }
            }
            Value::Number(number) => {
                names.extend(self.known_name(&number.to_string()).map(str::to_owned));
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn find_known_in(&self, text: &str, names: &mut BTreeSet<String>) {
        let mut from = 0;
        while let Step::Found(span) = self.next_known(text, from, End::Here) {
            from = span.end;
            if !span.name.ends_with(ENCODED) {
                names.insert(span.name);
            }
        }
    }

    fn hidden(&self, mut body: Value, reach: Reach) -> serde_json::Result<EventBody> {
        if let Some(data) = body.get_mut("data") {
            *data = self.hide_within(data.take(), reach);
        }
        serde_json::from_value(body)
    }

    /// Puts names in the place of secrets everywhere in a value.
    pub fn hide_in_value(&self, value: Value) -> Value {
        self.hide_within(value, Reach::Everything)
    }

    fn hide_within(&self, value: Value, reach: Reach) -> Value {
        match value {
            Value::String(text) => match self.hide(&text) {
                Cow::Borrowed(_) => Value::String(text),
                Cow::Owned(hidden) => Value::String(hidden),
            },
            Value::Array(items) => {
                items.into_iter().map(|item| self.hide_within(item, reach)).collect()
            }
            Value::Object(fields) => {
                let hide = |(key, value): (String, Value)| {
                    let value = self.hide_within(value, reach);
                    match self.hide(&key) {
                        Cow::Owned(hidden) if reach == Reach::Everything => (hidden, value),
                        _ => (key, value),
                    }
                };
                fields.into_iter().map(hide).collect()
            }
            Value::Number(number) if reach == Reach::Everything && self.has_numbers() => {
                match self.known_name(&number.to_string()) {
                    Some(name) => name.into(),
                    None => Value::Number(number),
                }
            }
            other => other,
        }
    }

    /// Takes note of secrets that a tool came across, by their names as [`hide_and_note`] gave them: tools
    /// have them. Names that were found in a text are no such names.
    ///
    /// [`hide_and_note`]: Self::hide_and_note
    pub fn note<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) {
        let Some(known) = &self.0.known else { return };
        for name in names {
            if let Some(held) = known.by_name(name.as_ref()) {
                held.seen.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Returns the names of the known secrets that tools came across.
    pub fn seen(&self) -> BTreeSet<String> {
        let forms = self.0.known.iter().flat_map(|known| &known.forms);
        let seen = forms.filter(|form| form.seen.load(Ordering::Relaxed));
        seen.map(|form| form.name.clone()).collect()
    }

    /// Takes note of what was said in a run before it was resumed: a name whose secret was forgotten stands
    /// for no other. It makes nothing known that tools did not come across.
    pub fn recall(&self, message: &Message) {
        let text = serde_json::to_string(message).unwrap_or_default();
        for name in names(&text) {
            let known = self.0.known.as_ref().and_then(|known| known.by_name(name));
            if known.is_none() && self.0.found.value(name).is_none() {
                let mut lost = self.0.lost.lock().unwrap_or_else(PoisonError::into_inner);
                lost.insert(name.to_owned());
            }
        }
    }

    /// Puts secrets in the place of their names: those that the run came across, and no others.
    ///
    /// # Errors
    ///
    /// Returns the first name whose secret is not given back.
    pub fn reveal_in_value(&self, value: Value) -> Result<Value, Withheld> {
        Ok(match value {
            Value::String(text) => Value::String(self.reveal(text)?),
            Value::Array(items) => {
                let items = items.into_iter().map(|item| self.reveal_in_value(item));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let mut revealed = Map::new();
                for (key, value) in fields {
                    revealed.insert(self.reveal(key)?, self.reveal_in_value(value)?);
                }
                Value::Object(revealed)
            }
            other => other,
        })
    }

    fn reveal(&self, text: String) -> Result<String, Withheld> {
        let mut revealed = String::new();
        let mut rest = text.as_str();
        for name in names(&text) {
            let Some(secret) = self.secret(name)? else { continue };
            let (before, after) = rest.split_once(name).unwrap_or((rest, ""));
            revealed.push_str(before);
            revealed.push_str(&secret);
            rest = after;
        }
        if revealed.is_empty() && rest.len() == text.len() {
            return Ok(text);
        }
        revealed.push_str(rest);
        Ok(revealed)
    }

    /// Returns what a name stands for; nothing, if it stands for nothing.
    fn secret(&self, name: &str) -> Result<Option<String>, Withheld> {
        if let Some(held) = self.0.known.as_ref().and_then(|known| known.by_name(name)) {
            let seen = held.seen.load(Ordering::Relaxed);
            let kept = || Withheld::Kept(name.to_owned());
            return seen.then(|| Some(held.text.clone())).ok_or_else(kept);
        }
        if name.ends_with(ENCODED) && self.0.known.is_some() {
            return Err(Withheld::Kept(name.to_owned()));
        }
        match self.0.found.value(name) {
            Some(token) => Ok(Some(token)),
            None if self.is_lost(name) => Err(Withheld::Forgotten(name.to_owned())),
            None => Ok(None),
        }
    }

    fn is_lost(&self, name: &str) -> bool {
        self.0.lost.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// Returns the name of a secret that stands in a value.
    pub fn named_in(&self, value: &Value) -> Option<Withheld> {
        match value {
            Value::String(text) => self.named(text),
            Value::Array(items) => items.iter().find_map(|item| self.named_in(item)),
            Value::Object(fields) => fields
                .iter()
                .find_map(|(key, value)| self.named(key).or_else(|| self.named_in(value))),
            _ => None,
        }
    }

    fn named(&self, text: &str) -> Option<Withheld> {
        names(text).find_map(|name| match self.secret(name) {
            Ok(None) => None,
            Ok(Some(_)) => Some(Withheld::Kept(name.to_owned())),
            Err(withheld) => Some(withheld),
        })
    }
}

impl Known {
    fn new(forms: Vec<Held>) -> Self {
        let mut words: Vec<String> = forms.iter().map(|form| form.text.clone()).collect();
        let mut anchors: Vec<Vec<(Layout, usize)>> = Vec::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for (number, form) in forms.iter().enumerate() {
            let is_value = form.name.len() + ENCODED.len() == form.encoded_name.len() + 1;
            let dumps = if is_value { layout::dump_anchors(form.text.as_bytes()) } else { vec![] };
            for anchor in layout::wrapped_anchors(&form.text).chain(dumps) {
                let next = anchors.len();
                let known = *numbers.entry(anchor.text.clone()).or_insert(next);
                if known == next {
                    words.push(anchor.text);
                    anchors.push(Vec::new());
                }
                if let Some(targets) = anchors.get_mut(known) {
                    targets.push((anchor.layout, number));
                }
            }
        }
        let by_name = forms.iter().enumerate();
        let by_name = by_name.map(|(index, form)| (form.name.clone(), index)).collect();
        let is_number = |form: &Held| form.text.bytes().all(|byte| byte.is_ascii_digit());
        let has_numbers = forms.iter().any(is_number);
        let longest = forms.iter().map(|form| form.text.len()).max().unwrap_or_default();
        Self { finder: Finder::new(words), forms, anchors, longest, by_name, has_numbers }
    }

    fn is_form(&self, word: usize) -> bool {
        word < self.forms.len()
    }

    /// Returns the secret that a word of the finder shows: a form, or a layout around an anchor.
    fn span(&self, text: &str, found: Found, end: End) -> Step<Span> {
        let Found { start, end: found_end, word } = found;
        if self.is_form(word) {
            return Step::Found(Span { start, end: found_end, name: self.name(word).to_owned() });
        }
        let targets = self.anchors.get(word - self.forms.len()).map_or(&[][..], Vec::as_slice);
        let mut reach = 0;
        for (layout, form) in targets {
            let Some(held) = self.forms.get(*form) else { continue };
            let value = held.text.as_bytes();
            reach = reach.max(layout::reach(value));
            if let Some(span) = layout::locate(*layout, value, text, start..found_end) {
                let name = held.encoded_name.clone();
                return Step::Found(Span { start: span.start, end: span.end, name });
            }
        }
        let is_open = end == End::Later && text.len() < found_end + reach;
        if is_open { Step::Open(start) } else { Step::Clear }
    }

    fn name(&self, form: usize) -> &str {
        self.forms.get(form).map_or("[secret]", |form| &form.name)
    }

    fn encoded_name(&self, form: usize) -> &str {
        self.forms.get(form).map_or("[secret]", |form| &form.encoded_name)
    }

    fn by_name(&self, name: &str) -> Option<&Held> {
        self.by_name.get(name).and_then(|index| self.forms.get(*index))
    }
}

/// Returns everything in a text that may be the name of a secret, in order.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(OPENING).filter_map(|(start, _)| {
        let rest = text.get(start..)?;
        let end = rest.bytes().take(LONGEST_NAME).position(|byte| byte == b']')?;
        rest.get(..=end)
    })
}

/// A short word of small letters would be found in what is no secret.
fn is_a_word(value: &str) -> bool {
    value.len() < 16 && value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

impl fmt::Debug for Known {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.forms.iter().map(|form| &form.name)).finish()
    }
}

#[cfg(test)]
mod tests;
