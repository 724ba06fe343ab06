//! What a tool says about itself, before anybody calls it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effect::EffectRules;
use crate::time::Millis;

macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the word this value has in JSON and on the command line.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word).ok_or_else(|| UnknownWord {
                    word: word.to_owned(),
                    known: Self::ALL.iter().map(|value| value.as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    };
}

/// A word that is none of those known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not one of {known}")]
pub struct UnknownWord {
    /// The word.
    pub word: String,
    /// The words there are.
    pub known: String,
}

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
    pub parameters: Value,
    /// JSON Schema of its value, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
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
            parameters: serde_json::json!({ "type": "object", "properties": {} }),
            output: None,
            version: None,
            requires: Vec::new(),
            aliases: BTreeMap::new(),
            markdown: false,
            streaming: false,
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

    /// Returns what a model is told about the tool.
    pub fn declaration(&self) -> Declaration {
        Declaration {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.parameters.clone(),
        }
    }
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
    pub parameters: Value,
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
    fn defaults_follow_the_kind() {
        let look = ToolSpec::new("ls", "Lists.", Kind::Read);
        assert_eq!((look.repeat, look.concurrency), (Repeat::Pure, Concurrency::Shared));
        let act = ToolSpec::new("sh", "Runs.", Kind::Execute);
        assert_eq!((act.repeat, act.concurrency), (Repeat::Unsafe, Concurrency::Exclusive));
    }
}
