//! A configuration that was loaded: the values, and where each of them comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::discreet::{text_without_keys, words_without_keys};
use super::entry::{ProjectEntry, left_out_warning};
use super::interpolate::asks_for_variables;
use super::key::Key;
use super::load::MadeSchema;
use super::node::{Body, Field, Node};
use super::origin::{Layer, Origin, readable_path};
use super::problem::Problem;
use super::schema::{Child, Schema, Shape};
use super::secret::MASK;
use super::settings::Config;
use super::sources::Trust;

/// A loaded configuration with the history of every value.
#[non_exhaustive]
pub struct Loaded {
    /// The values that hold. Paths in it are absolute.
    pub config: Config,
    pub(crate) layers: Vec<LayerTree>,
    pub(crate) effective: Node,
    pub(crate) schema: MadeSchema,
    pub(crate) warnings: Vec<Problem>,
    pub(crate) files: Vec<ConfigFile>,
    pub(crate) trust: Trust,
}

/// The trees hold secrets in plain text, so what is shown is what [`Loaded::to_json`] shows.
impl fmt::Debug for Loaded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Loaded")
            .field("config", &self.to_json())
            .field("warnings", &self.warnings)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

/// One layer, as far as it counts.
pub(crate) struct LayerTree {
    pub(crate) layer: Layer,
    pub(crate) root: Node,
}

/// A file that was read or looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConfigFile {
    /// The layer it is for.
    pub layer: Layer,
    /// Its path.
    #[serde(serialize_with = "readable_path")]
    pub path: PathBuf,
    /// What became of it.
    pub state: FileState,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileState {
    /// It was read.
    Read,
    /// There is none.
    Missing,
    /// It is there but another one beside it counts.
    Ignored,
    /// It has mistakes, and is not trusted, so it does not count.
    LeftOut,
}

/// One value that holds, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// Its full key.
    pub key: String,
    /// Its value, masked where it is secret.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
}

impl Loaded {
    /// Returns what was ignored or changed on the way, and why.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// Returns the files that were read and those that were looked for, in the order of looking.
    pub fn files(&self) -> &[ConfigFile] {
        &self.files
    }

    /// Returns the directories file tools may touch, absolute; nothing where nobody said, which
    /// means the workspace, and an empty list where nothing is allowed.
    pub fn allowed_paths(&self) -> Option<Vec<PathBuf>> {
        self.config.tools.allowed_paths.clone()
    }

    /// Tells whether the project decides things.
    pub const fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Returns the entries of the project's file, where each is trusted by itself.
    pub fn project_entries(&self) -> &[ProjectEntry] {
        &self.config.project_entries
    }

    /// Returns the directory of the project's file, where one was read.
    pub fn project_root(&self) -> Option<&Path> {
        let read =
            |file: &&ConfigFile| (file.layer, file.state) == (Layer::Project, FileState::Read);
        self.files.iter().find(read).and_then(|file| file.path.parent())
    }

    /// Says in one line which entries of the project's file are left out.
    pub fn entries_warning(&self) -> Option<String> {
        left_out_warning(self.project_entries())
    }

    /// Returns all values that hold as JSON, secrets masked.
    pub fn to_json(&self) -> Value {
        shown(&self.effective, Child::Known(Schema::new(&self.schema)))
    }

    /// Returns every value that holds, by key, with where it comes from.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let mut entries = Vec::new();
        let schema = Child::Known(Schema::new(&self.schema));
        collect(&self.effective, schema, &Key::default(), &mut entries);
        entries.into_iter()
    }
}

/// Collects the leaves below a node: a list of plain values is one, an empty section is none.
pub(crate) fn collect(node: &Node, schema: Child<'_>, key: &Key, entries: &mut Vec<Entry>) {
    let is_plain = |item: &Node| matches!(item.body, Body::Scalar(_));
    match (&node.body, schema) {
        (Body::Map(fields), Child::Known(_) | Child::Unknown) => {
            for (name, field) in fields {
                collect(&field.node, schema.named(name), &key.name(name), entries);
            }
        }
        (Body::List(items), Child::Known(_)) if !items.iter().all(is_plain) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, schema.item(), &key.index(index), entries);
            }
        }
        _ => {
            let (value, origin) = (shown(node, schema), node.origin.clone());
            entries.push(Entry { key: key.to_string(), value, origin });
        }
    }
}

/// What becomes of keys in command lines and addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Hidden,
    Whole,
}

/// Returns a value as people may see it: secrets masked, keys in addresses and command lines as well, and text that
/// was put together from the environment as it was written.
pub(crate) fn shown(node: &Node, schema: Child<'_>) -> Value {
    value(node, schema, Keys::Hidden)
}

/// Returns the same with all of its command lines, addresses, variables and headers, for whoever is asked to trust
/// them: to some program what looks like a key may be an order. What is nothing but a key stays masked, unless it asks for
/// variables: whose key it wants is to be seen.
pub(crate) fn shown_whole(node: &Node, schema: Child<'_>) -> Value {
    value(node, schema, Keys::Whole)
}

fn value(node: &Node, schema: Child<'_>, keys: Keys) -> Value {
    if is_secret(schema) {
        let asks = node.text().filter(|text| keys == Keys::Whole && asks_for_variables(text));
        return asks.unwrap_or(MASK).into();
    }
    let text = |text: &str| match keys {
        Keys::Hidden => text_without_keys(text),
        Keys::Whole => text.to_owned(),
    };
    match (&node.body, &node.template) {
        (Body::Scalar(Value::String(_)), Some(written)) if is_free_text(schema) => {
            text(written).into()
        }
        (Body::Scalar(Value::String(said)), _) => text(said).into(),
        (Body::Scalar(plain), _) => plain.clone(),
        (Body::List(items), _) => {
            let items = items.iter().map(|item| value(item, schema.item(), keys)).collect();
            if keys == Keys::Hidden { words_shown(items) } else { Value::Array(items) }
        }
        (Body::Map(fields), _) => {
            let entry = |(name, field): (&String, &Field)| {
                let below = match schema.named(name) {
                    // A variable, for instance, and one like NODE_OPTIONS says what a program runs.
                    known if keys == Keys::Whole && is_secret(known) && !has(schema, name) => {
                        Child::Free
                    }
                    known => known,
                };
                (name.clone(), value(&field.node, below, keys))
            };
            Value::Object(fields.iter().map(entry).collect())
        }
    }
}

fn is_secret(schema: Child<'_>) -> bool {
    matches!(schema, Child::Known(schema) if schema.is_secret())
}

/// Tells whether a name below a section is one that we gave, and not the author of the file.
fn has(schema: Child<'_>, name: &str) -> bool {
    matches!(schema, Child::Known(schema) if schema.names().contains(&name))
}

/// A list of texts may be a command line, in which a key stands behind its flag.
fn words_shown(items: Vec<Value>) -> Value {
    let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
    match texts.map(words_without_keys) {
        Some(words) => words.into(),
        None => items.into(),
    }
}

/// Words from a list and paths are not secrets; any other text may be.
fn is_free_text(schema: Child<'_>) -> bool {
    match schema {
        Child::Known(schema) => {
            schema.shape() == Shape::Text && schema.choices().is_none() && !schema.is_path()
        }
        Child::Unknown | Child::Free => true,
    }
}
