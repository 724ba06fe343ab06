//! Why a setting has the value it has.

use serde::Serialize;
use serde_json::Value;

use super::check::nearest_keys;
use super::key::Key;
use super::loaded::{Entry, LayerTree, Loaded, collect, shown};
use super::node::{Body, Node};
use super::origin::{Layer, Origin};
use super::schema::{Child, Schema};
use super::settings::ALIASES;

/// Why a setting has the value it has. Secrets are masked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The full key.
    pub key: String,
    /// The spelling that was asked for, where the key has another one.
    pub alias: Option<String>,
    /// What the key is for.
    pub description: Option<String>,
    /// The value that holds; none where nobody set one.
    pub value: Option<Value>,
    /// Where it comes from; none for a section, whose values may come from several places.
    pub origin: Option<Origin>,
    /// What is built in.
    pub default: Option<Value>,
    /// What lower layers say, the closest one first.
    pub overridden: Vec<Overridden>,
    /// For a section, every value below it.
    pub entries: Vec<Entry>,
}

/// A value that does not hold, because a higher layer says something else.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Overridden {
    /// The value, masked where it is secret.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
}

/// Why a key cannot be explained.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// It is not written like a key.
    #[error("`{key}` is not a key: {mistake}")]
    NotAKey {
        /// What was asked for.
        key: String,
        /// What is wrong with it.
        mistake: String,
    },
    /// There is no such key.
    #[error("there is no key `{key}`{}", did_you_mean(.nearest))]
    UnknownKey {
        /// What was asked for.
        key: String,
        /// The keys that come closest.
        nearest: Vec<String>,
    },
}

fn did_you_mean(nearest: &[String]) -> String {
    let names: Vec<&str> = nearest.iter().map(String::as_str).collect();
    convoke_core::nearest::did_you_mean(&names)
}

impl Loaded {
    /// Says why a setting has the value it has. The key of a section explains everything in it.
    ///
    /// # Errors
    ///
    /// Returns the nearest keys where there is no such key.
    pub fn explain(&self, key: &str) -> Result<Explanation, ExplainError> {
        let asked = Key::parse(key)
            .map_err(|mistake| ExplainError::NotAKey { key: key.to_owned(), mistake })?;
        let root = Schema::new(&self.schema);
        let (key, alias) = canonical(asked);
        let schema = root.get(&key);
        let node = self.effective.get(&key);
        let description = match schema {
            Child::Known(schema) => schema.description().map(str::to_owned),
            Child::Free if node.is_some() => None,
            Child::Free | Child::Unknown => return Err(unknown(root, &key)),
        };
        let mut entries = Vec::new();
        let section = node.filter(|node| is_section(node));
        if let Some(node) = section {
            collect(node, schema, &key, &mut entries);
        }
        let origin = node.filter(|_| section.is_none()).map(|node| node.origin.clone());
        Ok(Explanation {
            key: key.to_string(),
            alias,
            description,
            value: node.map(|node| shown(node, schema)),
            overridden: origin.as_ref().map(|o| self.below(o.layer, &key)).unwrap_or_default(),
            origin,
            default: self.default_of(&key, schema),
            entries,
        })
    }

    fn below(&self, layer: Layer, key: &Key) -> Vec<Overridden> {
        let root = Schema::new(&self.schema);
        let lower = self.layers.iter().rev().filter(|tree| tree.layer < layer);
        let value = |tree: &LayerTree| {
            let node = tree.root.get(key)?;
            Some(Overridden { value: shown(node, root.get(key)), origin: node.origin.clone() })
        };
        lower.filter_map(value).collect()
    }

    /// What is built in; for an entry of a list, what its type says.
    fn default_of(&self, key: &Key, schema: Child<'_>) -> Option<Value> {
        let built_in = self.layers.iter().find(|tree| tree.layer == Layer::BuiltIn)?;
        match (built_in.root.get(key), schema) {
            (Some(node), _) => Some(shown(node, schema)),
            (None, Child::Known(schema)) => schema.default().cloned(),
            (None, _) => None,
        }
    }
}

fn canonical(asked: Key) -> (Key, Option<String>) {
    let spelled = asked.to_string();
    let name = ALIASES.iter().find(|(alias, _)| *alias == spelled);
    match name.and_then(|(_, name)| Key::parse(name).ok()) {
        Some(key) => (key, Some(spelled)),
        None => (asked, None),
    }
}

fn is_section(node: &Node) -> bool {
    matches!(&node.body, Body::Map(fields) if !fields.is_empty())
}

fn unknown(root: Schema<'_>, key: &Key) -> ExplainError {
    let nearest = nearest_keys(root, key).iter().map(ToString::to_string).collect();
    ExplainError::UnknownKey { key: key.to_string(), nearest }
}
