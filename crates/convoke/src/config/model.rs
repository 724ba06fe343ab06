//! The `model` section: which model is asked, where it is, and how it is to answer.

use std::collections::BTreeMap;

use convoke_model::{Effort, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::FactsConfig;
use super::provider::ProviderConfig;
use super::timeout::Timeout;

/// Which model is asked, where it is, and how it is to answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ModelConfig {
    /// The model that is asked where nobody names one: `provider/model`, or an alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub default: Option<String>,
    /// Other names of models: what each stands for.
    #[schemars(extend("propertyNames" = { "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$" }))]
    pub aliases: BTreeMap<String, String>,
    /// Providers by name: new ones, and what is different about known ones. A folder that is not
    /// trusted cannot set them.
    #[schemars(extend("propertyNames" = { "pattern": "^[A-Za-z0-9_-]{1,64}$" }))]
    pub providers: BTreeMap<String, ProviderConfig>,
    /// How much chance there is in an answer. Sent only if it is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Only the likeliest words that make up this share are considered. Sent only if it is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// How many tokens a model may think: -1 lets it decide, 0 switches thinking off. Sent only if
    /// it is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1, max = 10_000_000))]
    pub thinking_budget: Option<i64>,
    /// How hard a model thinks, where its provider takes a word instead of a number. Sent only if
    /// it is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<Effort>,
    /// The longest answer wanted, in tokens. Sent only if it is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub max_output_tokens: Option<u64>,
    /// How long a provider may be silent in the middle of an answer, as `90s` or in milliseconds. Before its first
    /// word it has five times as long.
    pub idle_timeout: Timeout,
    /// How many times a request that failed is made again.
    #[schemars(range(max = 20))]
    pub retries: u32,
    /// What is known about models, over what is built in, by `provider/model` with `*` for any
    /// text. The closest pattern counts. A folder that is not trusted cannot set it.
    #[schemars(extend("propertyNames" = { "pattern": "^[^/]+/.+$" }))]
    pub facts: BTreeMap<String, FactsConfig>,
}

impl ModelConfig {
    /// Returns how models are to answer.
    pub fn settings(&self) -> Settings {
        Settings {
            temperature: self.temperature,
            top_p: self.top_p,
            thinking_budget: self.thinking_budget,
            reasoning_effort: self.reasoning_effort,
            max_output_tokens: self.max_output_tokens,
        }
    }
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            default: None,
            aliases: BTreeMap::new(),
            providers: BTreeMap::new(),
            temperature: None,
            top_p: None,
            thinking_budget: None,
            reasoning_effort: None,
            max_output_tokens: None,
            idle_timeout: Timeout::from_millis(120_000),
            retries: 4,
            facts: BTreeMap::new(),
        }
    }
}
