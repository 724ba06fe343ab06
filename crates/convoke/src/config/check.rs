//! Is it right? Every layer is checked against the schema before it is merged, so that a mistake
//! is reported where it was written, and all of them at once.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use convoke_core::nearest::nearest;
use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::key::{Key, Segment};
use super::load::MadeSchema;
use super::node::{Body, Node};
use super::origin::Place;
use super::problem::Problem;
use super::schema::{Child, Schema, Shape};
use super::servers;

pub(super) mod doubts;
mod lists;

fn prepare(schema: &Value) -> Result<Validator, Problem> {
    jsonschema::draft202012::new(schema).map_err(|error| {
        Problem::of_place(Place::BuiltIn, format!("the schema cannot be used: {error}"))
    })
}

/// The schema, ready for checking.
///
/// Preparing it takes a few milliseconds, which is most of what starting the command costs, so that
/// happens only when there is something to check.
#[derive(Debug)]
pub(crate) struct Checker<'a> {
    source: &'a MadeSchema,
    validator: OnceCell<Result<Validator, Problem>>,
}

impl<'a> Checker<'a> {
    /// Takes a schema.
    pub(crate) fn new(schema: &'a MadeSchema) -> Self {
        Self { source: schema, validator: OnceCell::new() }
    }

    fn schema(&self) -> Schema<'a> {
        Schema::new(self.source)
    }

    /// Returns everything that is wrong with a layer, in the order it was written.
    pub(crate) fn check(&self, root: &Node) -> Vec<Problem> {
        if root.is_empty() {
            return Vec::new();
        }
        let validator = match self.validator.get_or_init(|| prepare(self.source)) {
            Ok(validator) => validator,
            Err(problem) => return vec![problem.clone()],
        };
        let mut problems = Vec::new();
        self.unknown_keys(root, self.schema(), &Key::default(), &mut problems);
        let json = root.to_json();
        problems.extend(validator.iter_errors(&json).filter_map(|e| self.explain(root, &e)));
        lists::check(root, &mut problems);
        problems.sort_by(|left, right| left.place.cmp(&right.place));
        problems.dedup();
        problems
    }

    fn unknown_keys(&self, node: &Node, schema: Schema<'_>, key: &Key, found: &mut Vec<Problem>) {
        match &node.body {
            Body::Scalar(_) => {}
            Body::List(items) => {
                let Some(schema) = schema.items() else { return };
                for (index, item) in items.iter().enumerate() {
                    self.unknown_keys(item, schema, &key.index(index), found);
                }
            }
            Body::Map(_) if schema.shape() != Shape::Map => {}
            Body::Map(fields) => {
                for (name, field) in fields {
                    let key = key.name(name);
                    match schema.named(name) {
                        Child::Known(schema) => {
                            self.unknown_keys(&field.node, schema, &key, found);
                        }
                        Child::Unknown => found.push(
                            Problem::new(&field.key_place, &key, "there is no such key")
                                .with_any_hint(did_you_mean(self.schema(), &key)),
                        ),
                        Child::Free => {}
                    }
                }
            }
        }
    }

    /// Puts one finding of the validator into words; unknown keys are reported elsewhere.
    fn explain(&self, root: &Node, error: &ValidationError<'_>) -> Option<Problem> {
        let key = key_of(error.instance_path());
        let node = root.get(&key)?;
        let Child::Known(schema) = self.schema().get(&key) else { return None };
        let place = &node.origin.place;
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { .. } => None,
            ValidationErrorKind::PropertyNames { error } => {
                let pattern = schema.name_pattern()?;
                let name = error.instance().as_str()?;
                let Body::Map(fields) = &node.body else { return None };
                let message = format!("expected a name that matches `{pattern}`");
                Some(Problem::new(&fields.get(name)?.key_place, &key.name(name), message))
            }
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                Some(Problem::new(place, &key, format!("`{name}` is missing")))
            }
            _ => {
                let message =
                    format!("expected {}, found {}", schema.expected(), found(node, schema));
                let hint = servers::as_list(&key, node).or_else(|| hint(node, schema));
                Some(Problem::new(place, &key, message).with_any_hint(hint))
            }
        }
    }
}

/// Names the keys somebody could have meant: those beside the wrong one first, then all.
pub(crate) fn did_you_mean(root: Schema<'_>, key: &Key) -> Option<String> {
    let close: Vec<String> = nearest_keys(root, key).iter().map(ToString::to_string).collect();
    let close: Vec<&str> = close.iter().map(String::as_str).collect();
    let question = convoke_core::nearest::did_you_mean(&close);
    match close.as_slice() {
        [] => keys_there(root, key),
        _ => Some(question.trim_start_matches("; ").to_owned()),
    }
}

/// Names the keys that there are where one is not known, for a key that is like none of them.
pub(crate) fn keys_there(root: Schema<'_>, key: &Key) -> Option<String> {
    let (parent, schema, _) = known_part(root, key)?;
    let names: Vec<String> = schema.names().iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => None,
        _ if parent.is_root() => Some(format!("the keys are {}", names.join(", "))),
        _ => Some(format!("the keys of `{parent}` are {}", names.join(", "))),
    }
}

/// Returns the known keys that come closest to one that is not known, closest first: those with a
/// similar name in the same section, then those with the same name elsewhere, then with a similar.
pub(crate) fn nearest_keys(root: Schema<'_>, key: &Key) -> Vec<Key> {
    let siblings = nearest_siblings(root, key);
    if !siblings.is_empty() {
        return siblings;
    }
    let Some(wanted) = key.last_name() else { return Vec::new() };
    let all = root.keys();
    let keys_of = |name: &str| -> Vec<Key> {
        all.iter().filter(|known| known.last_name() == Some(name)).take(3).cloned().collect()
    };
    let same = keys_of(wanted);
    if !same.is_empty() {
        return same;
    }
    // Who knows the section is helped more by its keys than by one that is only similar elsewhere.
    if known_part(root, key).is_some_and(|(parent, ..)| !parent.is_root()) {
        return Vec::new();
    }
    let names: BTreeSet<&str> = all.iter().filter_map(Key::last_name).collect();
    nearest(wanted, names).first().map(|name| keys_of(name)).unwrap_or_default()
}

fn nearest_siblings(root: Schema<'_>, key: &Key) -> Vec<Key> {
    let Some((parent, schema, name)) = known_part(root, key) else { return Vec::new() };
    nearest(name, schema.names()).iter().map(|name| parent.name(name)).collect()
}

/// Returns how far a key is known, what the schema says there, and the first name that is not known.
fn known_part<'s, 'k>(root: Schema<'s>, key: &'k Key) -> Option<(Key, Schema<'s>, &'k str)> {
    let mut parent = Key::default();
    let mut schema = root;
    for segment in key.segments() {
        match (Child::Known(schema).step(segment), segment) {
            (Child::Known(below), _) => {
                schema = below;
                parent = parent.with(segment.clone());
            }
            (Child::Unknown, Segment::Name(name)) => return Some((parent, schema, name)),
            _ => return None,
        }
    }
    None
}

/// Says what was found. Nothing that is or may be secret is repeated.
fn found(node: &Node, schema: Schema<'_>) -> String {
    let hidden = is_hidden(node, schema);
    match &node.body {
        Body::List(items) if items.is_empty() => "an empty list".to_owned(),
        Body::List(_) => "a list".to_owned(),
        Body::Map(_) => "a mapping".to_owned(),
        Body::Scalar(Value::Null) => "nothing".to_owned(),
        Body::Scalar(Value::String(_)) if hidden => "other text".to_owned(),
        Body::Scalar(_) if hidden => "another value".to_owned(),
        Body::Scalar(Value::String(text)) => format!("the text {:?}", shortened(text)),
        Body::Scalar(value) => format!("`{value}`"),
    }
}

fn is_hidden(node: &Node, schema: Schema<'_>) -> bool {
    let from_environment = matches!(node.origin.place, Place::Variable(_));
    // Where the name of a variable belongs, people put what belongs into the variable.
    let may_be_secret = schema.is_secret() || schema.is_variable();
    may_be_secret || node.template.is_some() || from_environment
}

/// Returns the beginning of a text, for messages.
pub(super) fn shortened(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn hint(node: &Node, schema: Schema<'_>) -> Option<String> {
    if let (Some(choices), Some(text)) = (schema.choices(), node.text()) {
        if is_hidden(node, schema) {
            return None;
        }
        let close = nearest(text, choices);
        return close.first().map(|word| format!("did you mean `{word}`?"));
    }
    let other = matches!(&node.body, Body::Scalar(value) if !value.is_null() && !value.is_string());
    let text = schema.shape() == Shape::Text && schema.choices().is_none();
    (text && other).then(|| "put it in quotes to make it text".to_owned())
}

fn key_of(path: &Location) -> Key {
    path.segments().fold(Key::default(), |key, segment| match segment {
        LocationSegment::Property(name) => key.name(&name),
        LocationSegment::Index(index) => key.index(index),
    })
}
