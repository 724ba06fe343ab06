//! What a tool says about itself, before anybody calls it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effect::EffectRules;
use crate::schema::Schema;
use crate::time::Millis;
use crate::word::word_enum;

word_enum! {
    /// Which family a tool belongs to: for listing, statistics and default limits.
    Category {
        /// Time and environment.
        System = "system",
        /// Files and directories.
        File = "file",
        /// HTTP and search engines.
        Network = "network",
        /// Parsing and encoding.
        Data = "data",
        /// Running programs.
        Code = "code",
        /// From an MCP server.
        Mcp = "mcp",
        /// Another agent.
        Agent = "agent",
        /// Made by the user.
        Custom = "custom",
    }
}

word_enum! {
    /// What a call does to the world: for permission, confirmation and scheduling.
    Kind {
        /// Looks at something.
        Read = "read",
        /// Looks for something.
        Search = "search",
        /// Changes something.
        Edit = "edit",
        /// Removes something.
        Delete = "delete",
        /// Moves something.
        Move = "move",
        /// Runs a program.
        Execute = "execute",
        /// Talks to the network.
        Fetch = "fetch",
        /// Only reasons.
        Think = "think",
        /// Runs another agent.
        Agent = "agent",
        /// Anything else.
        Other = "other",
    }
}

word_enum! {
    /// What happens when a call is made a second time, after a crash for instance.
    Repeat {
        /// Nothing changes, however often.
        Pure = "pure",
        /// The second time changes nothing more.
        Idempotent = "idempotent",
        /// It might do harm; it is never repeated on its own.
        Unsafe = "unsafe",
    }
}

word_enum! {
    /// Whether other calls of the same run may be under way at the same time.
    Concurrency {
        /// They may.
        Shared = "shared",
        /// They may not.
        Exclusive = "exclusive",
    }
}

/// What a tool says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing about a tool")]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64, unique in a registry.
    pub name: String,
    /// Its name for people; the name itself where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What it does, for the model.
    pub description: String,
    /// Its family.
    pub category: Category,
    /// What a call does to the world.
    pub kind: Kind,
    /// JSON Schema of its arguments: an object.
    pub parameters: Schema,
    /// JSON Schema of its value, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Schema>,
    /// Its version, where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Tools it needs beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// Other spellings of its parameters: `file_path` for `path`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
    /// Whether its text is Markdown.
    #[serde(default)]
    pub markdown: bool,
    /// Whether it tells what it does while it runs.
    #[serde(default)]
    pub streaming: bool,
    /// Whether it gets secrets where its arguments name them. Only for what puts its arguments into files
    /// and nowhere else: no program, no variable, no answer may carry them on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_secrets: bool,
    /// Whether a call starts programs on this machine, whatever its kind is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub starts_programs: bool,
    /// How long it may take, where the default does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
    /// Which arguments name what it touches.
    #[serde(default)]
    pub effects: EffectRules,
    /// What happens when a call is repeated.
    pub repeat: Repeat,
    /// Whether other calls may be under way at the same time.
    pub concurrency: Concurrency,
}

impl ToolSpec {
    /// Starts a spec with the defaults of its kind: what only looks is pure, the rest is unsafe to
    /// repeat; what runs programs runs alone.
    pub fn new(name: impl Into<String>, description: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            display_name: None,
            description: description.into(),
            category: Category::Custom,
            kind,
            parameters: Schema::deferred(
                || serde_json::json!({ "type": "object", "properties": {} }),
            ),
            output: None,
            version: None,
            requires: Vec::new(),
            aliases: BTreeMap::new(),
            markdown: false,
            streaming: false,
            takes_secrets: false,
            starts_programs: false,
            timeout_ms: None,
            effects: EffectRules::default(),
            repeat: kind.default_repeat(),
            concurrency: kind.default_concurrency(),
        }
    }

    /// Returns the name for people.
    pub fn title(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.name)
    }

    /// Returns what a model is told about the tool. It is paid for with every request, so what a model
    /// does not need to call the tool rightly is left out; arguments are checked against all of it.
    pub fn declaration(&self) -> Declaration {
        Declaration {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: lean(&self.parameters).into(),
        }
    }
}

/// Returns a schema without the bounds that arguments hardly ever pass, and without remarks on the forms
/// one argument can take.
fn lean(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, value)| match key.as_str() {
                "additionalProperties" => *value != &Value::Bool(false),
                "maximum" | "maxItems" => !value.is_number(),
                _ => true,
            });
            kept.map(|(key, value)| match (key.as_str(), value) {
                ("anyOf", Value::Array(forms)) => {
                    (key.clone(), forms.iter().map(without_description).collect())
                }
                _ => (key.clone(), lean(value)),
            })
            .collect()
        }
        Value::Array(items) => items.iter().map(lean).collect(),
        other => other.clone(),
    }
}

fn without_description(form: &Value) -> Value {
    let mut form = lean(form);
    if let Value::Object(map) = &mut form
        && map.get("description").is_some_and(Value::is_string)
    {
        map.remove("description");
    }
    form
}

impl Kind {
    /// Returns how a tool of this kind behaves when repeated, unless it says otherwise.
    pub const fn default_repeat(self) -> Repeat {
        match self {
            Self::Read | Self::Search | Self::Think => Repeat::Pure,
            _ => Repeat::Unsafe,
        }
    }

    /// Returns whether a tool of this kind runs beside others, unless it says otherwise.
    pub const fn default_concurrency(self) -> Concurrency {
        match self {
            Self::Execute => Concurrency::Exclusive,
            _ => Concurrency::Shared,
        }
    }

    /// Tells whether calls of this kind leave the world as it was.
    pub const fn only_looks(self) -> bool {
        matches!(self, Self::Read | Self::Search | Self::Think)
    }
}

/// What a model is told about a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Declaration {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Schema,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_values_agree_with_json() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert_eq!(kind.as_str().parse::<Kind>().as_ref(), Ok(kind));
        }
        for category in Category::ALL {
            assert_eq!(serde_json::to_value(category).unwrap(), category.as_str());
        }
        let error = "files".parse::<Category>().unwrap_err();
        assert!(error.to_string().contains("system, file, network"), "{error}");
    }

    #[test]
    fn a_model_is_told_what_it_needs_to_call_a_tool() {
        let mut spec = ToolSpec::new("ls", "Lists.", Kind::Read);
        spec.parameters = serde_json::json!({
            "type": "object", "additionalProperties": false,
            "properties": {
                "maximum": { "type": "integer", "minimum": 1, "maximum": 9 },
                "names": { "anyOf": [
                    { "type": "string", "description": "One." },
                    { "type": "array", "items": { "type": "string" }, "maxItems": 9 },
                ] },
            },
        })
        .into();
        assert_eq!(
            spec.declaration().parameters,
            serde_json::json!({
                "type": "object",
                "properties": {
                    "maximum": { "type": "integer", "minimum": 1 },
                    "names": { "anyOf": [
                        { "type": "string" }, { "type": "array", "items": { "type": "string" } },
                    ] },
                },
            })
        );
    }

    #[test]
    fn defaults_follow_the_kind() {
        let look = ToolSpec::new("ls", "Lists.", Kind::Read);
        assert_eq!((look.repeat, look.concurrency), (Repeat::Pure, Concurrency::Shared));
        let act = ToolSpec::new("sh", "Runs.", Kind::Execute);
        assert_eq!((act.repeat, act.concurrency), (Repeat::Unsafe, Concurrency::Exclusive));
    }
}
