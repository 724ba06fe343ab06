//! The `budget` section: what a run may use.

use convoke_core::{Budget, Millis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Dollars;
use super::timeout::Timeout;

/// What a run may use. What is not set has no limit of its own. A project's file can only lower
/// what the user allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct BudgetConfig {
    /// How many times the model may answer, the last answer included.
    #[schemars(range(min = 1, max = 100_000))]
    pub turns: u32,
    /// How long a run may take, as `1h30m` or in milliseconds, without the time spent waiting for
    /// people.
    pub time: Timeout,
    /// How long one answer of the model may take, as `90s` or in milliseconds.
    pub turn_time: Timeout,
    /// How many tokens may be sent and received together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub tokens: Option<u64>,
    /// How many US dollars may be spent, as a decimal in quotes: `"1.50"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
    /// How many calls of tools there may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub tool_calls: Option<u32>,
}

impl BudgetConfig {
    /// Returns it as a run takes it.
    pub fn budget(&self) -> Budget {
        Budget {
            turns: self.turns,
            time_ms: Millis::new(self.time.duration()),
            turn_time_ms: Millis::new(self.turn_time.duration()),
            tokens: self.tokens,
            cost: self.cost.map(Dollars::money),
            tool_calls: self.tool_calls,
        }
    }
}

impl From<&Budget> for BudgetConfig {
    fn from(budget: &Budget) -> Self {
        let timeout = |time: Millis| {
            Timeout::from_millis(u64::try_from(time.get().as_millis()).unwrap_or(u64::MAX))
        };
        Self {
            turns: budget.turns,
            time: timeout(budget.time_ms),
            turn_time: timeout(budget.turn_time_ms),
            tokens: budget.tokens,
            cost: budget.cost.map(Dollars::from),
            tool_calls: budget.tool_calls,
        }
    }
}

impl Default for BudgetConfig {
    fn default() -> Self {
        Self::from(&Budget::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_is_what_a_run_has() {
        assert_eq!(BudgetConfig::default().budget(), Budget::default());
    }
}
