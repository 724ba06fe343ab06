//! What a user knows about models: one entry of `model.facts`.

use convoke_core::{ModelFacts, Price};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Dollars;

/// What is known about a model. What is not set is as it is built in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct FactsConfig {
    /// How many tokens it can take in and give back together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub window: Option<u64>,
    /// The longest answer it gives, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_output: Option<u64>,
    /// How many calls of tools are taken of one of its answers; 128 where it is not set. The model is told
    /// of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_024))]
    pub max_calls: Option<u32>,
    /// What a million tokens cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceConfig>,
}

/// What a million tokens cost, in US dollars: decimals in quotes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct PriceConfig {
    /// Sent.
    pub input: Dollars,
    /// Sent, and cached by the provider; as `input` where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<Dollars>,
    /// Sent, and put into the provider's cache; as `input` where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Dollars>,
    /// Received, thoughts included.
    pub output: Dollars,
}

impl FactsConfig {
    /// Returns them as the rest of the program takes them.
    pub fn facts(&self) -> ModelFacts {
        ModelFacts {
            window: self.window,
            max_output: self.max_output,
            max_calls: self.max_calls,
            price: self.price.as_ref().map(PriceConfig::price),
        }
    }
}

impl PriceConfig {
    fn price(&self) -> Price {
        Price {
            input: self.input.money(),
            cached_input: self.cached_input.map(Dollars::money),
            cache_write: self.cache_write.map(Dollars::money),
            output: self.output.money(),
        }
    }
}
