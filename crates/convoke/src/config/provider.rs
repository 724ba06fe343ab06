//! Where models are: one entry of `model.providers`.

use std::collections::BTreeMap;

use convoke_model::WireFormat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::secret::Secret;

/// A provider of models. What is not set is as it is known of a provider of this name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ProviderConfig {
    /// What it speaks; `openai-chat`, which most servers speak, where nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireWord>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^https?://"))]
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"),
        extend("format" = "environment-variable")
    )]
    pub key_variable: Option<String>,
    /// The key itself; write `${NAME}` to take it from the environment. It goes before
    /// `keyVariable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Secret>,
    /// Further headers of every request. They are never shown.
    #[schemars(extend("propertyNames" = { "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" }))]
    pub headers: BTreeMap<String, Secret>,
    /// How many requests may be under way at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_concurrent: Option<u32>,
    /// How many requests may be made in a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_minute: Option<u32>,
}

/// What a provider speaks, as it is written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WireWord {
    /// Google's `streamGenerateContent`.
    Gemini,
    /// Anthropic's Messages.
    Anthropic,
    /// The Responses of `OpenAI`.
    Openai,
    /// The chat completions of `OpenAI`, which many servers speak.
    OpenaiChat,
}

impl From<WireWord> for WireFormat {
    fn from(word: WireWord) -> Self {
        match word {
            WireWord::Gemini => Self::Gemini,
            WireWord::Anthropic => Self::Anthropic,
            WireWord::Openai => Self::OpenAiResponses,
            WireWord::OpenaiChat => Self::OpenAiChat,
        }
    }
}
