//! Tokens and money.

use std::borrow::Cow;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount of US dollars, exact. In JSON it is a decimal in a string, so that no reader rounds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(Decimal);

impl Money {
    /// Wraps an amount.
    pub const fn new(amount: Decimal) -> Self {
        Self(amount)
    }

    /// Returns the amount.
    pub const fn amount(self) -> Decimal {
        self.0
    }
}

impl fmt::Display for Money {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "${}", self.0)
    }
}

impl FromStr for Money {
    type Err = rust_decimal::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Decimal::from_str_exact(text.trim().trim_start_matches('$')).map(Self)
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Money {
    fn schema_name() -> Cow<'static, str> {
        "Money".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": r"^-?[0-9]+(\.[0-9]+)?$",
            "description": "An exact amount of US dollars.",
        })
    }
}

/// What model calls used. Adding two gives the use of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input_tokens: u64,
    /// Tokens sent that the provider had cached.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Tokens sent that the provider put into its cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Tokens received, thoughts included.
    pub output_tokens: u64,
    /// Tokens received as thoughts.
    #[serde(default)]
    pub thought_tokens: u64,
    /// Whether the provider did not say, and some of this is our estimate.
    #[serde(default, skip_serializing_if = "is_false")]
    pub estimated: bool,
    /// What it cost; absent when a price was not known, never zero instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            thought_tokens: self.thought_tokens.saturating_add(other.thought_tokens),
            estimated: self.estimated || other.estimated,
            cost: match (self.cost, other.cost) {
                (Some(left), Some(right)) => Some(left + right),
                (left, None) if other.is_empty() => left,
                (None, right) if self.is_empty() => right,
                _ => None,
            },
        }
    }
}

impl Usage {
    /// Returns what was used since there was only `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(before.cached_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_sub(before.cache_write_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            thought_tokens: self.thought_tokens.saturating_sub(before.thought_tokens),
            estimated: self.estimated,
            cost: match (self.cost, before.cost) {
                (Some(now), Some(then)) => Some(Money(now.0.saturating_sub(then.0))),
                (now, None) if before.is_empty() => now,
                _ => None,
            },
        }
    }

    /// Tells whether nothing was used.
    pub const fn is_empty(&self) -> bool {
        self.input_tokens == 0 && self.output_tokens == 0
    }
}

/// What a million tokens cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Price {
    /// Sent.
    pub input: Money,
    /// Sent, and cached by the provider; as `input` where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<Money>,
    /// Sent, and put into the provider's cache; as `input` where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Money>,
    /// Received, thoughts included.
    pub output: Money,
}

impl Price {
    /// Returns what a use costs, exactly.
    pub fn of(&self, usage: &Usage) -> Money {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let written = usage.cache_write_tokens.min(usage.input_tokens - cached);
        let fresh = usage.input_tokens - cached - written;
        let million = Decimal::from(1_000_000);
        let part = |tokens: u64, price: Money| {
            let whole = Decimal::from(tokens).saturating_mul(price.0);
            Money(whole.checked_div(million).unwrap_or(whole))
        };
        part(fresh, self.input)
            + part(cached, self.cached_input.unwrap_or(self.input))
            + part(written, self.cache_write.unwrap_or(self.input))
            + part(usage.output_tokens, self.output)
    }
}

/// What is known about a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelFacts {
    /// How many tokens it can take in and give back together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The longest answer it gives, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// How many calls of tools are taken of one of its answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
    /// What it costs. Absent means unknown, never free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl ModelFacts {
    /// How many calls are taken of one answer where nobody says. Providers accept no more of them in a
    /// conversation.
    const CALLS: u32 = 128;

    /// Returns how many calls of tools are taken of one of its answers: one at least, since an answer of which
    /// nothing is taken leads nowhere.
    pub fn calls_taken(&self) -> u32 {
        self.max_calls.unwrap_or(Self::CALLS).max(1)
    }

    /// Returns these facts, with what another source says where they say nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            window: self.window.or(other.window),
            max_output: self.max_output.or(other.max_output),
            max_calls: self.max_calls.or(other.max_calls),
            price: self.price.or(other.price),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(tokens: u64, cost: Option<&str>) -> Usage {
        Usage {
            input_tokens: tokens,
            output_tokens: tokens,
            cost: cost.map(|text| text.parse().unwrap()),
            ..Usage::default()
        }
    }

    #[test]
    fn money_is_exact() {
        let tenth: Money = "0.1".parse().unwrap();
        let sum = (0..10).fold(Money::default(), |sum, _| sum + tenth);
        assert_eq!(serde_json::to_string(&sum).unwrap(), "\"1.0\"");
        assert_eq!(serde_json::from_str::<Money>("\"1.0\"").unwrap(), sum);
    }

    #[test]
    fn an_unknown_price_makes_the_sum_unknown() {
        let total: Usage = [usage(1, Some("0.5")), usage(2, None)].into_iter().sum();
        assert_eq!((total.input_tokens, total.cost), (3, None));
        let total: Usage = [usage(1, Some("0.5")), usage(2, Some("0.25"))].into_iter().sum();
        assert_eq!(total.cost, Some("0.75".parse().unwrap()));
        let nothing_yet: Usage = [Usage::default(), usage(1, Some("0.5"))].into_iter().sum();
        assert_eq!(nothing_yet.cost, Some("0.5".parse().unwrap()));
    }
}
