//! Settings given one at a time: `CONVOKE__TOOLS__TIMEOUT=5000` and `--set tools.timeout=5000`.
//!
//! In a variable `__` goes one level down, and a name matches however its words are written:
//! `MAXCONCURRENT`, `MAX_CONCURRENT` and `maxConcurrent` are one. A flag spells the key as a file
//! does. Both layers belong to the user.

use std::collections::BTreeMap;

use serde_json::Value;

use super::check::{did_you_mean, keys_there, nearest_keys};
use super::coerce::coerce;
use super::key::{Key, Segment};
use super::node::{Field, Node};
use super::origin::{Layer, Origin, Place};
use super::problem::Problem;
use super::schema::{Child, Schema};

/// How the name of a variable that is a setting begins.
pub const VARIABLE_PREFIX: &str = "CONVOKE__";

/// Makes the layer of the environment.
pub(crate) fn from_environment<'s>(
    environment: &BTreeMap<String, String>,
    schema: impl Fn() -> Schema<'s>,
    problems: &mut Vec<Problem>,
) -> Node {
    let mut root = Node::empty(Origin { layer: Layer::Environment, place: Place::Caller });
    let mut taken: BTreeMap<Key, &str> = BTreeMap::new();
    for (variable, text) in environment {
        let Some(path) = variable.strip_prefix(VARIABLE_PREFIX) else { continue };
        let schema = schema();
        let place = Place::Variable(variable.as_str().into());
        let key = spelled_key(path, schema);
        if let Some(other) = taken.insert(key.clone(), variable) {
            let message = format!("the variable `{other}` sets the same key");
            problems.push(Problem::new(&place, &key, message));
            continue;
        }
        let hint = || variable_hint(schema, &key);
        let origin = Origin { layer: Layer::Environment, place };
        set(&mut root, &key, text, &origin, schema, hint).unwrap_or_else(|e| problems.push(e));
    }
    root
}

/// Makes the layer of the flags. A key that is set twice has the later value.
pub(crate) fn from_flags<'s>(
    flags: &[(String, String)],
    schema: impl Fn() -> Schema<'s>,
    problems: &mut Vec<Problem>,
) -> Node {
    let mut root = Node::empty(Origin { layer: Layer::Flags, place: Place::Caller });
    for (spelling, text) in flags {
        let schema = schema();
        let place = Place::Flag(spelling.as_str().into());
        let key = match Key::parse(spelling) {
            Ok(key) if !key.is_root() => key,
            Ok(_) => {
                problems.push(Problem::of_place(place, "the key is missing"));
                continue;
            }
            Err(mistake) => {
                problems.push(Problem::of_place(place, format!("not a key: {mistake}")));
                continue;
            }
        };
        let origin = Origin { layer: Layer::Flags, place };
        let hint = || did_you_mean(schema, &key);
        set(&mut root, &key, text, &origin, schema, hint).unwrap_or_else(|e| problems.push(e));
    }
    root
}

fn set(
    root: &mut Node,
    key: &Key,
    text: &str,
    origin: &Origin,
    schema: Schema<'_>,
    hint: impl Fn() -> Option<String>,
) -> Result<(), Problem> {
    let place = &origin.place;
    if key.segments().iter().any(|segment| matches!(segment, Segment::Index(_))) {
        let message = "one entry of a list cannot be set";
        return Err(Problem::new(place, key, message).with_hint("set the whole list"));
    }
    let Child::Known(schema) = schema.get(key) else {
        return Err(Problem::new(place, key, "there is no such key").with_any_hint(hint()));
    };
    let value = coerce(text, schema).ok_or_else(|| {
        let message = match place {
            Place::Flag(_) if !schema.is_secret() => {
                format!("expected {}, found {text:?}", schema.expected())
            }
            _ => format!("expected {}, found something else", schema.expected()),
        };
        Problem::new(place, key, message)
    })?;
    if !matches!(value, Value::Null) {
        root.put(key, Field::new(Node::from_json(value, origin)));
    }
    Ok(())
}

/// Works out which key a variable means. What is not known is kept as it is written.
fn spelled_key(path: &str, root: Schema<'_>) -> Key {
    let mut schema = Child::Known(root);
    let mut key = Key::default();
    for part in path.split("__") {
        let name = match schema {
            Child::Known(schema) => known_name(part, schema),
            _ => None,
        };
        let name = name.unwrap_or_else(|| free_name(part));
        schema = schema.named(&name);
        key = key.name(&name);
    }
    key
}

fn known_name(part: &str, schema: Schema<'_>) -> Option<String> {
    let wanted = folded(part);
    let is_wanted = |name: &&str| folded(name) == wanted;
    schema.names().into_iter().find(is_wanted).map(str::to_owned)
}

fn folded(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// A name that is the user's own, of a tool for instance: in capitals it means small letters.
fn free_name(part: &str) -> String {
    let shouted = !part.chars().any(char::is_lowercase);
    if shouted { part.to_lowercase() } else { part.to_owned() }
}

fn variable_hint(schema: Schema<'_>, key: &Key) -> Option<String> {
    let close = nearest_keys(schema, key);
    let close = close.first().map(|key| format!("did you mean `{}`?", variable_name(key)));
    close.or_else(|| keys_there(schema, key))
}

/// Returns the variable that sets a key: `tools.maxConcurrent` has
/// `CONVOKE__TOOLS__MAX_CONCURRENT`.
fn variable_name(key: &Key) -> String {
    let words = |segment: &Segment| match segment {
        Segment::Index(index) => index.to_string(),
        Segment::Name(name) => name.chars().fold(String::new(), |mut spelled, letter| {
            if letter.is_uppercase() {
                spelled.push('_');
            }
            spelled.extend(letter.to_uppercase());
            spelled
        }),
    };
    let parts: Vec<String> = key.segments().iter().map(words).collect();
    format!("{VARIABLE_PREFIX}{}", parts.join("__"))
}

#[cfg(test)]
mod tests;
