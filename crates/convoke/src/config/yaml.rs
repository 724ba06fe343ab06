//! YAML into a [`Node`] tree with the line and column of every key and value.
//!
//! The reader is strict where YAML is generous: only `true` and `false` are truth values, a key
//! may appear once, and there is one document. Depth, size and the expansion of aliases are
//! bounded, so a hostile file cannot exhaust memory or the stack.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_saphyr::{Error, Location, MessageFormatter, Options, Spanned, UserMessageFormatter};

use super::node::{Body, Field, Node};
use super::origin::{Layer, Origin, Place, Position};
use super::problem::Problem;

/// Reads the text of a configuration file. An empty file is an empty mapping.
pub(crate) fn parse(text: &str, path: &Arc<Path>, layer: Layer) -> Result<Node, Problem> {
    let tree: Tree = serde_saphyr::from_str_with_options(text, options())
        .map_err(|error| Problem::of_place(place_of(&error, path), message_of(&error)))?;
    let root = tree.into_node(path, layer);
    match root.body {
        Body::Map(_) => Ok(root),
        _ if root.is_null() => Ok(Node::empty(root.origin)),
        _ => Err(Problem::of_place(
            root.origin.place,
            "expected a mapping of settings, such as `tools:`, at the top of the file",
        )),
    }
}

/// Reads one value, as given in a flag or a variable.
pub(crate) fn parse_value(text: &str) -> Option<Value> {
    serde_saphyr::from_str_with_options(text, options()).ok()
}

fn options() -> Options {
    serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_depth: 64,
            max_nodes: 100_000,
            max_events: 300_000,
            max_aliases: 1_000,
            max_recorded_anchor_events: 100_000,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
    }
}

fn place_of(error: &Error, path: &Arc<Path>) -> Place {
    let position = error.location().map(position).filter(|position| position.line > 0);
    Place::File { path: Arc::clone(path), position }
}

fn message_of(error: &Error) -> String {
    match error.without_snippet() {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{key}` appears twice in one mapping")
        }
        Error::MultipleDocuments { .. } => "expected one document, found a second `---`".to_owned(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias refers to the value it is part of".to_owned()
        }
        other => format!("not valid YAML: {}", UserMessageFormatter.format_message(other)),
    }
}

fn position(location: Location) -> Position {
    Position { line: location.line(), column: location.column() }
}

/// A value as the YAML reader hands it over.
struct Tree {
    position: Position,
    shape: Shape,
}

enum Shape {
    Scalar(Value),
    List(Vec<Tree>),
    Map(BTreeMap<String, (Position, Tree)>),
}

impl Tree {
    fn into_node(self, path: &Arc<Path>, layer: Layer) -> Node {
        let body = match self.shape {
            Shape::Scalar(value) => Body::Scalar(value),
            Shape::List(items) => {
                Body::List(items.into_iter().map(|item| item.into_node(path, layer)).collect())
            }
            Shape::Map(entries) => {
                let field = |(name, (key, tree)): (String, (Position, Self))| {
                    let key_place = Place::at(path, key);
                    (name, Field { key_place, node: tree.into_node(path, layer) })
                };
                Body::Map(entries.into_iter().map(field).collect())
            }
        };
        Node::new(Origin { layer, place: Place::at(path, self.position) }, body)
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Shape>::deserialize(deserializer)?;
        Ok(Self { position: position(spanned.referenced), shape: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Shape, E> {
        Ok(Shape::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Shape, E> {
        Ok(Shape::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Shape, E> {
        Ok(Shape::Scalar(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Shape, E> {
        // `5e3` is a whole number, however it is written.
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
        let number = if value.fract() == 0.0 && value.abs() < 1e15 {
            Number::from(value as i64)
        } else {
            Number::from_f64(value).ok_or_else(|| E::custom("not a finite number"))?
        };
        Ok(Shape::Scalar(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Shape, E> {
        Ok(Shape::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Shape, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Shape::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Shape, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((key, tree)) = access.next_entry::<Spanned<String>, Tree>()? {
            let at = position(key.referenced);
            if entries.insert(key.value, (at, tree)).is_some() {
                return Err(A::Error::custom("a key appears twice in one mapping"));
            }
        }
        Ok(Shape::Map(entries))
    }
}

#[cfg(test)]
mod tests;
