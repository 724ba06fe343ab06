//! What it costs to check a value against a schema.
//!
//! A schema of a few lines can make a check take longer than anybody lives: references multiply, each
//! level of them doubling the work of the one below. Somebody else's schema is therefore measured before it is
//! used: how often is one part of a value looked at, at most, however the value is shaped?

use std::collections::HashMap;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::validate::MAX_DEPTH;

/// How often one part of a value may be looked at.
const MOST_LOOKS: u64 = 10_000;

/// A schema is not to be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unchecked {
    /// It refers to something that is not in it.
    #[error("refers to `{0}`, which is not in it")]
    Unknown(String),
    /// It refers to itself without going deeper into the value.
    #[error("refers to itself without end")]
    Endless,
    /// Checking a value against it may take too long.
    #[error(
        "costs too much to check: one part of a value may be looked at more than {MOST_LOOKS} times"
    )]
    Costly,
}

/// Measures a schema. Values are taken to be nested at most [`MAX_DEPTH`] levels deep.
pub fn check_cost(schema: &Value) -> Result<(), Unchecked> {
    let mut graph = Graph::default();
    let mut finder = Finder::new(schema);
    if finder.references == 0 {
        // Without references each part of the schema is used once at most.
        return Ok(());
    }
    graph.add(schema, &mut finder);
    while let Some((node, target)) = finder.open.pop() {
        let targets = finder.resolve(&target)?;
        for target in targets {
            let target = graph.add(target, &mut finder);
            if let Some(node) = graph.nodes.get_mut(node) {
                node.beside.push(target);
            }
        }
    }
    let order = graph.order()?;
    let mut looks = vec![0_u64; graph.nodes.len()];
    for _ in 0..MAX_DEPTH {
        let deeper = looks.clone();
        for index in &order {
            let looked = graph.looks(*index, &looks, &deeper);
            if looked > MOST_LOOKS {
                return Err(Unchecked::Costly);
            }
            if let Some(place) = looks.get_mut(*index) {
                *place = looked;
            }
        }
        if looks == deeper {
            break;
        }
    }
    Ok(())
}

/// A part of a schema.
#[derive(Debug, Default)]
struct Node {
    /// Parts that look at the same part of a value.
    beside: Vec<usize>,
    /// Parts that look at what is below it. Of each group only one looks at any one thing.
    below: Vec<Vec<usize>>,
}

/// The parts of a schema, and which of them lead to which.
#[derive(Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
    /// Where the parts are that were added already.
    known: HashMap<*const Value, usize>,
}

impl Graph {
    /// Adds a part and all that stands in it, and returns its number.
    fn add<'a>(&mut self, schema: &'a Value, finder: &mut Finder<'a>) -> usize {
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            return *known;
        }
        let index = self.nodes.len();
        self.nodes.push(Node::default());
        self.known.insert(std::ptr::from_ref(schema), index);
        let Some(map) = schema.as_object() else { return index };
        let mut node = Node::default();
        for (keyword, value) in map {
            match (keyword.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                    finder.open.push((index, target.clone()));
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                    node.beside.extend(parts.iter().map(|part| self.add(part, finder)));
                }
                ("not" | "if" | "then" | "else", part) => node.beside.push(self.add(part, finder)),
                ("dependentSchemas" | "dependencies", Value::Object(parts)) => {
                    node.beside.extend(parts.values().map(|part| self.add(part, finder)));
                }
                ("properties", Value::Object(parts)) => {
                    node.below.push(parts.values().map(|part| self.add(part, finder)).collect());
                }
                ("patternProperties", Value::Object(parts)) => {
                    node.below.extend(parts.values().map(|part| vec![self.add(part, finder)]));
                }
                ("prefixItems" | "items", Value::Array(parts)) => {
                    node.below.push(parts.iter().map(|part| self.add(part, finder)).collect());
                }
                (
                    "additionalProperties"
                    | "unevaluatedProperties"
                    | "propertyNames"
                    | "items"
                    | "additionalItems"
                    | "unevaluatedItems"
                    | "contains"
                    | "contentSchema",
                    part,
                ) => node.below.push(vec![self.add(part, finder)]),
                _ => {}
            }
        }
        if let Some(place) = self.nodes.get_mut(index) {
            *place = node;
        }
        index
    }

    /// Returns the parts in an order in which each comes after those beside it.
    fn order(&self) -> Result<Vec<usize>, Unchecked> {
        let mut walk = Walk { order: Vec::new(), visits: vec![Visit::Not; self.nodes.len()] };
        for start in 0..self.nodes.len() {
            let mut path = vec![(start, 0)];
            while let Some((index, next)) = path.pop() {
                if next == 0 && !walk.enter(index)? {
                    continue;
                }
                match self.nodes.get(index).and_then(|node| node.beside.get(next)) {
                    Some(beside) => path.extend([(index, next + 1), (*beside, 0)]),
                    None => walk.leave(index),
                }
            }
        }
        Ok(walk.order)
    }

    /// Counts how often one thing is looked at because of a part.
    fn looks(&self, index: usize, beside: &[u64], below: &[u64]) -> u64 {
        let at = |looks: &[u64], index: usize| looks.get(index).copied().unwrap_or_default();
        let Some(node) = self.nodes.get(index) else { return 1 };
        let here = node.beside.iter().map(|part| at(beside, *part));
        let deeper = node
            .below
            .iter()
            .map(|group| group.iter().map(|part| at(below, *part)).max().unwrap_or_default());
        here.chain(deeper).fold(1, u64::saturating_add)
    }
}

/// How far the parts have been put in order.
struct Walk {
    order: Vec<usize>,
    visits: Vec<Visit>,
}

impl Walk {
    /// Begins with a part. Tells whether there is anything to do for it.
    fn enter(&mut self, index: usize) -> Result<bool, Unchecked> {
        let Some(visit) = self.visits.get_mut(index) else { return Ok(false) };
        match std::mem::replace(visit, Visit::Open) {
            Visit::Not => Ok(true),
            Visit::Open => Err(Unchecked::Endless),
            Visit::Done => {
                *visit = Visit::Done;
                Ok(false)
            }
        }
    }

    fn leave(&mut self, index: usize) {
        if let Some(visit) = self.visits.get_mut(index) {
            *visit = Visit::Done;
        }
        self.order.push(index);
    }
}

#[derive(Clone, Copy)]
enum Visit {
    Not,
    Open,
    Done,
}

/// Finds what references mean.
struct Finder<'a> {
    whole: &'a Value,
    /// Parts that have a name of their own.
    named: HashMap<String, Vec<&'a Value>>,
    /// How many references there are.
    references: usize,
    /// References that were met and not followed yet: where, and what they say.
    open: Vec<(usize, String)>,
}

impl<'a> Finder<'a> {
    fn new(whole: &'a Value) -> Self {
        let mut finder = Self { whole, named: HashMap::new(), references: 0, open: Vec::new() };
        finder.look(whole);
        finder
    }

    fn look(&mut self, value: &'a Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.look(item)),
            Value::Object(map) => {
                self.name(map, value);
                map.values().for_each(|item| self.look(item));
            }
            _ => {}
        }
    }

    fn name(&mut self, map: &'a Map<String, Value>, value: &'a Value) {
        let text = |keyword: &str| map.get(keyword).and_then(Value::as_str);
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            self.references += usize::from(text(keyword).is_some());
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = text(keyword) {
                self.named.entry(format!("#{name}")).or_default().push(value);
            }
        }
        for keyword in ["$id", "id"] {
            if let Some(name) = text(keyword) {
                self.named.entry(name.trim_end_matches('#').to_owned()).or_default().push(value);
            }
        }
    }

    /// Returns everything that a reference may mean.
    fn resolve(&self, target: &str) -> Result<Vec<&'a Value>, Unchecked> {
        let unknown = || Unchecked::Unknown(target.chars().take(100).collect());
        if let Some(named) = self.named.get(target.trim_end_matches('#')).filter(|_| target != "#")
        {
            return Ok(named.clone());
        }
        let (document, fragment) = target.split_once('#').unwrap_or((target, ""));
        let base = match document {
            "" => self.whole,
            other => self.named.get(other).and_then(|found| found.first()).ok_or_else(unknown)?,
        };
        let fragment = percent_encoding::percent_decode_str(fragment).decode_utf8_lossy();
        if fragment.is_empty() || fragment.starts_with('/') {
            return base.pointer(&fragment).map(|found| vec![found]).ok_or_else(unknown);
        }
        self.named.get(&format!("#{fragment}")).cloned().ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chain(levels: usize, each: &Value) -> Value {
        let mut parts = Map::new();
        for level in 0..levels {
            let text = each.to_string().replace("NEXT", &format!("#/$defs/d{}", level + 1));
            parts.insert(format!("d{level}"), serde_json::from_str(&text).unwrap());
        }
        parts.insert(format!("d{levels}"), json!({}));
        json!({ "type": "object", "allOf": [{ "$ref": "#/$defs/d0" }], "$defs": parts })
    }

    #[test]
    fn references_that_multiply_are_refused_without_being_followed() {
        let twice = json!({ "allOf": [{ "$ref": "NEXT" }, { "$ref": "NEXT" }] });
        assert_eq!(check_cost(&chain(40, &twice)), Err(Unchecked::Costly));
        assert_eq!(check_cost(&chain(10, &twice)), Ok(()));
        let below = json!({ "properties": { "a": { "$ref": "NEXT" } }, "additionalProperties": { "$ref": "NEXT" },
            "patternProperties": { "a": { "$ref": "NEXT" } } });
        assert_eq!(check_cost(&chain(40, &below)), Err(Unchecked::Costly));
    }

    #[test]
    fn what_refers_to_itself_is_taken_if_each_thing_is_looked_at_a_few_times_only() {
        let tree = json!({ "$ref": "#/$defs/node", "$defs": { "node": { "type": "object", "properties": {
            "left": { "$ref": "#/$defs/node" }, "right": { "$ref": "#/$defs/node" },
            "more": { "type": "array", "items": { "$ref": "#/$defs/node" } } } } } });
        assert_eq!(check_cost(&tree), Ok(()));
        let doubling = json!({ "$ref": "#/$defs/n", "$defs": { "n": { "allOf": [
            { "properties": { "a": { "$ref": "#/$defs/n" } } },
            { "properties": { "a": { "$ref": "#/$defs/n" } } } ] } } });
        assert_eq!(check_cost(&doubling), Err(Unchecked::Costly));
        let endless = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/a" }] } } });
        assert_eq!(check_cost(&endless), Err(Unchecked::Endless));
    }

    #[test]
    fn references_are_found_however_they_are_written() {
        for target in [
            "#",
            "#/$defs/a~1b",
            "#/%24defs/a~1b",
            "#here",
            "https://x.example/s",
            "https://x.example/s#here",
        ] {
            let schema = json!({ "$id": "https://x.example/s", "properties": { "p": { "$ref": target } },
                "$defs": { "a/b": { "$anchor": "here" } } });
            assert_eq!(check_cost(&schema), Ok(()), "{target}");
        }
        let elsewhere = json!({ "$ref": "https://elsewhere.example/x" });
        assert_eq!(
            check_cost(&elsewhere),
            Err(Unchecked::Unknown("https://elsewhere.example/x".into()))
        );
    }

    #[test]
    fn a_schema_of_many_parts_is_measured_quickly() {
        let many: Map<String, Value> =
            (0..2_000).map(|index| (format!("p{index}"), json!({ "$ref": "#/$defs/t" }))).collect();
        let schema =
            json!({ "type": "object", "properties": many, "$defs": { "t": { "type": "string" } } });
        assert_eq!(check_cost(&schema), Ok(()));
    }
}
