//! What a model is asked.

use convoke_core::{Declaration, Message};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One question to a model. It borrows everything: a model turns it into bytes at once.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The standing instructions.
    pub system: &'a str,
    /// The tools it may ask for, in the order they are sent.
    pub tools: &'a [Declaration],
    /// Which of them it may or must ask for.
    pub tool_choice: ToolChoice<'a>,
    /// The conversation, oldest first. The first message is the user's.
    pub messages: &'a [Message],
    /// How to answer.
    pub settings: &'a Settings,
    /// The longest answer wanted; goes before what the settings say.
    pub max_output_tokens: Option<u64>,
    /// The shape of the answer, where the text has to be JSON of a schema.
    pub output: Option<&'a OutputSchema>,
}

impl<'a> Request<'a> {
    /// Starts a request with a conversation and nothing else.
    pub fn new(messages: &'a [Message]) -> Self {
        Self {
            system: "",
            tools: &[],
            tool_choice: ToolChoice::Auto,
            messages,
            settings: &Settings::UNSET,
            max_output_tokens: None,
            output: None,
        }
    }

    /// Returns the longest answer wanted, if anybody said one.
    pub fn max_output(&self) -> Option<u64> {
        self.max_output_tokens.or(self.settings.max_output_tokens)
    }
}

/// Whether a model may ask for tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    /// As it likes; nothing is sent.
    #[default]
    Auto,
    /// It must not. The declarations are sent all the same, so that the prompt stays the same.
    None,
    /// It must ask for this one.
    Only(&'a str),
}

/// How to answer. What is not set is not sent: the provider's default counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// How much chance there is in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Only the likeliest words that make up this share are considered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// How many tokens it may think: -1 lets the model decide, 0 switches thinking off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_budget: Option<i64>,
    /// How hard it thinks, where a provider takes a word instead of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<Effort>,
    /// The longest answer wanted, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

impl Settings {
    /// Nothing set.
    pub const UNSET: Self = Self {
        temperature: None,
        top_p: None,
        thinking_budget: None,
        reasoning_effort: None,
        max_output_tokens: None,
    };
}

/// How hard a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Not at all.
    None,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// Somewhat.
    Medium,
    /// A lot.
    High,
    /// As much as there is.
    Xhigh,
}

impl Effort {
    /// Returns its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
        }
    }
}

/// The shape an answer must have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// A name for it: letters, digits, `_` and `-`.
    pub name: String,
    /// The JSON Schema.
    pub schema: Value,
}
