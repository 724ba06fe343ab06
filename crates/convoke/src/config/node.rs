//! A tree of settings in which every key and every value knows where it was written.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::key::{Key, Segment};
use super::origin::{Origin, Place};

/// One value and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// Where it comes from.
    pub(crate) origin: Origin,
    /// What it is.
    pub(crate) body: Body,
    /// What was written, where `${…}` in it was replaced. Text from the environment may be secret,
    /// so this is what people are shown.
    pub(crate) template: Option<Arc<str>>,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// Nothing, a truth value, a number or text.
    Scalar(Value),
    /// A list.
    List(Vec<Node>),
    /// A mapping.
    Map(BTreeMap<String, Field>),
}

/// One entry of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// Where its key was written.
    pub(crate) key_place: Place,
    /// Its value.
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn new(origin: Origin, body: Body) -> Self {
        Self { origin, body, template: None }
    }

    /// An empty mapping.
    pub(crate) fn empty(origin: Origin) -> Self {
        Self::new(origin, Body::Map(BTreeMap::new()))
    }

    /// Tells whether it is an empty mapping.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.body, Body::Map(fields) if fields.is_empty())
    }

    /// Turns JSON into a tree that comes from one place as a whole.
    pub(crate) fn from_json(value: Value, origin: &Origin) -> Self {
        let body = match value {
            Value::Array(items) => {
                Body::List(items.into_iter().map(|item| Self::from_json(item, origin)).collect())
            }
            Value::Object(entries) => Body::Map(
                entries
                    .into_iter()
                    .map(|(name, value)| (name, Field::new(Self::from_json(value, origin))))
                    .collect(),
            ),
            scalar => Body::Scalar(scalar),
        };
        Self::new(origin.clone(), body)
    }

    /// Returns the value as JSON, secrets included.
    pub(crate) fn to_json(&self) -> Value {
        match &self.body {
            Body::Scalar(value) => value.clone(),
            Body::List(items) => items.iter().map(Self::to_json).collect(),
            Body::Map(fields) => Value::Object(
                fields.iter().map(|(name, field)| (name.clone(), field.node.to_json())).collect(),
            ),
        }
    }

    /// Remembers, here and below, that the value came from what was written by replacement.
    pub(crate) fn mark_replaced(&mut self, written: &Arc<str>) {
        self.template = Some(Arc::clone(written));
        match &mut self.body {
            Body::Scalar(_) => {}
            Body::List(items) => {
                for item in items {
                    item.mark_replaced(written);
                }
            }
            Body::Map(fields) => {
                for field in fields.values_mut() {
                    field.node.mark_replaced(written);
                }
            }
        }
    }

    /// Returns the text, where it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.body {
            Body::Scalar(value) => value.as_str(),
            _ => None,
        }
    }

    /// Returns the text as it was written, for messages: without what came from the environment.
    pub(crate) fn written(&self) -> Option<&str> {
        self.template.as_deref().or(self.text())
    }

    /// Replaces the text, and keeps where it comes from.
    pub(crate) fn set_text(&mut self, text: String) {
        self.body = Body::Scalar(text.into());
    }

    /// Returns whether there is nothing: `key:` with no value.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.body, Body::Scalar(Value::Null))
    }

    /// Returns the node below, where there is one.
    pub(crate) fn child(&self, segment: &Segment) -> Option<&Self> {
        match (&self.body, segment) {
            (Body::Map(fields), Segment::Name(name)) => fields.get(name).map(|field| &field.node),
            (Body::List(items), Segment::Index(index)) => items.get(*index),
            _ => None,
        }
    }

    /// Returns the node of a key, where there is one.
    pub(crate) fn get(&self, key: &Key) -> Option<&Self> {
        key.segments().iter().try_fold(self, |node, segment| node.child(segment))
    }

    /// Returns the entries, where this is a mapping.
    pub(crate) fn fields_mut(&mut self) -> Option<&mut BTreeMap<String, Field>> {
        match &mut self.body {
            Body::Map(fields) => Some(fields),
            _ => None,
        }
    }

    /// Returns the mapping a key of names leads to, where there is one.
    pub(crate) fn map_mut(&mut self, key: &Key) -> Option<&mut BTreeMap<String, Field>> {
        let mut fields = self.fields_mut()?;
        for segment in key.segments() {
            let Segment::Name(name) = segment else { return None };
            fields = fields.get_mut(name)?.node.fields_mut()?;
        }
        Some(fields)
    }

    /// Takes the node of a key of names out of the tree.
    pub(crate) fn take(&mut self, key: &Key) -> Option<Field> {
        let (Segment::Name(last), parents) = key.segments().split_last()? else { return None };
        self.map_mut(&parents.iter().fold(Key::default(), |key, step| key.with(step.clone())))?
            .remove(last)
    }

    /// Puts a node at a key of names, on top of what is there; mappings on the way are made.
    pub(crate) fn put(&mut self, key: &Key, field: Field) {
        let Some((last, parents)) = key.segments().split_last() else { return };
        let origin = field.node.origin.clone();
        let leaf = Self::new(origin.clone(), Body::Map(BTreeMap::from([entry(last, field)])));
        let wrap = |inner: Self, step: &Segment| {
            let entry = entry(step, Field::new(inner));
            Self::new(origin.clone(), Body::Map(BTreeMap::from([entry])))
        };
        self.overlay(parents.iter().rev().fold(leaf, wrap));
    }

    /// Lays another tree over this one: mappings are merged, everything else is replaced.
    pub(crate) fn overlay(&mut self, over: Self) {
        match (&mut self.body, over.body) {
            (Body::Map(fields), Body::Map(above)) => {
                for (name, field) in above {
                    match fields.get_mut(&name) {
                        Some(below) => {
                            below.key_place = field.key_place;
                            below.node.overlay(field.node);
                        }
                        None => {
                            fields.insert(name, field);
                        }
                    }
                }
            }
            (_, body) => *self = Self { body, origin: over.origin, template: over.template },
        }
    }
}

impl Field {
    /// An entry whose key was written where its value was.
    pub(crate) fn new(node: Node) -> Self {
        Self { key_place: node.origin.place.clone(), node }
    }
}

fn entry(segment: &Segment, field: Field) -> (String, Field) {
    match segment {
        Segment::Name(name) => (name.clone(), field),
        Segment::Index(index) => (index.to_string(), field),
    }
}
