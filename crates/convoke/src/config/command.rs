//! A tool that is a line of configuration: a command that gets the arguments of the call.

use std::collections::BTreeMap;
use std::path::PathBuf;

use convoke_core::{Category, EffectRules, Kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::secret::Secret;
use super::timeout::Timeout;

/// A tool that runs a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct CommandConfig {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$"))]
    pub name: String,
    /// What it does, for the model.
    #[schemars(length(min = 1))]
    pub description: String,
    /// JSON Schema of its arguments: an object.
    #[serde(default = "no_parameters")]
    #[schemars(extend("type" = "object"))]
    pub parameters: Value,
    /// The program and its arguments. No shell reads them.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// How long one call may take, as `90s` or in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Timeout>,
    /// What a call does to the world.
    #[serde(default = "execute")]
    pub kind: Kind,
    /// Its family.
    #[serde(default = "custom")]
    pub category: Category,
    /// Which arguments name what it touches.
    #[serde(default)]
    pub effects: EffectRules,
    /// Environment variables it gets. They are never shown.
    #[serde(default)]
    pub env: BTreeMap<String, Secret>,
    /// Where it runs, relative to the directory of the file that defines it; without the key, in
    /// the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("format" = "path"))]
    pub working_directory: Option<PathBuf>,
}

fn no_parameters() -> Value {
    json!({ "type": "object", "properties": {} })
}

const fn execute() -> Kind {
    Kind::Execute
}

const fn custom() -> Category {
    Category::Custom
}
