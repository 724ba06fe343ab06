//! What a run may use, how it ends and how it thinks: everything about it that does not change.

use std::time::Duration;

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::outcome::Cause;
use crate::time::Millis;
use crate::usage::{ModelFacts, Money, Price, Usage};
use crate::word::word_enum;

/// What a run may use. What is absent has no limit of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// Turns: answers of the model that may call tools, and the last one, which is kept for the end.
    pub turns: u32,
    /// Wall time, without the time spent waiting for people.
    pub time_ms: Millis,
    /// Wall time of one turn's answer.
    pub turn_time_ms: Millis,
    /// Tokens, sent and received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Calls of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u32>,
}

impl Budget {
    /// How much of the time is kept for a last answer, at most.
    const GRACE: Duration = Duration::from_mins(1);
    /// How long an answer is that agents leave their caller tokens and money for.
    const KEPT_OUTPUT: u64 = 2_048;

    /// Returns the turns in which tools may be called: all but the last, if there are several.
    pub fn working_turns(&self) -> u32 {
        if self.turns > 1 { self.turns - 1 } else { self.turns }
    }

    /// Returns the time in which tools may be called: a minute, or a quarter of a short time, is kept
    /// for the last answer.
    pub fn working_time(&self) -> Duration {
        let time = self.time_ms.get();
        time.saturating_sub(Self::GRACE.min(time / 4))
    }

    /// Returns how many tokens agents leave to their caller: enough for one more answer to a conversation of that
    /// length, or half of few.
    pub fn kept_tokens(&self, context: u64) -> u64 {
        let wanted = context.saturating_add(Self::KEPT_OUTPUT);
        self.tokens.map_or(0, |limit| wanted.min(limit / 2))
    }

    /// Returns how much money agents leave to their caller: what those tokens cost it, or half of little.
    pub fn kept_cost(&self, context: u64, price: Option<Price>) -> Money {
        let Some(limit) = self.cost else { return Money::default() };
        let half = Money::new(limit.amount() / Decimal::TWO);
        let fresh =
            Usage { input_tokens: context, output_tokens: Self::KEPT_OUTPUT, ..Usage::default() };
        let cached = Usage { cache_write_tokens: context, ..fresh };
        price.map_or(half, |price| half.min(price.of(&fresh).max(price.of(&cached))))
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            turns: 30,
            time_ms: Millis::new(Duration::from_mins(10)),
            turn_time_ms: Millis::new(Duration::from_mins(5)),
            tokens: None,
            cost: None,
            tool_calls: None,
        }
    }
}

word_enum! {
    /// A limit of a run.
    Limit {
        /// Turns.
        Turns = "turns",
        /// Wall time.
        Time = "time",
        /// Wall time of one turn's answer.
        TurnTime = "turn_time",
        /// Tokens.
        Tokens = "tokens",
        /// Money.
        Cost = "cost",
        /// Calls of tools.
        ToolCalls = "tool_calls",
    }
}

impl Limit {
    /// Returns the cause a run has that ended because of it.
    pub const fn cause(self) -> Cause {
        match self {
            Self::Turns => Cause::MaxTurns,
            Self::Time | Self::TurnTime => Cause::Timeout,
            Self::Tokens => Cause::MaxTokens,
            Self::Cost => Cause::MaxCost,
            Self::ToolCalls => Cause::MaxToolCalls,
        }
    }

    /// Tells whether a last answer is still possible: one that costs more than there is left is not.
    pub const fn leaves_room_for_grace(self) -> bool {
        !matches!(self, Self::Tokens | Self::Cost)
    }
}

word_enum! {
    /// What a model is asked for.
    Purpose {
        /// To work on the task.
        Main = "main",
        /// To finish with what there is.
        Grace = "grace",
        /// To sum up the conversation.
        Compact = "compact",
        /// To look back.
        Reflect = "reflect",
        /// To make a plan.
        Plan = "plan",
    }
}

impl Purpose {
    /// Tells whether the answer becomes part of the conversation.
    pub const fn is_turn(self) -> bool {
        matches!(self, Self::Main | Self::Grace)
    }
}

word_enum! {
    /// How a run says that it is done.
    Ending {
        /// By an answer without a call.
        Text = "text",
        /// By an answer without a call, which has to be JSON of a given shape.
        Structured = "structured",
        /// By an answer of a given shape, or by calling `complete_task` with it.
        StructuredOrCall = "structured_or_call",
        /// By calling `complete_task`.
        CompleteTask = "complete_task",
    }
}

word_enum! {
    /// How a run goes about its task.
    Strategy {
        /// It starts at once.
        Direct = "direct",
        /// It makes a plan first, and another one when looking back says so.
        Planned = "planned",
    }
}

word_enum! {
    /// What happens when a run makes no progress. It is always told first.
    OnStuck {
        /// It goes on from a summary of what it did; if that does not help, it ends.
        Restart = "restart",
        /// It goes on from a summary of what it did; if that does not help, a person is asked.
        Ask = "ask",
        /// It ends.
        End = "end",
    }
}

word_enum! {
    /// When a run looks back.
    ReflectionMode {
        /// Never.
        Off = "off",
        /// After a turn in which a call failed.
        OnFailure = "on_failure",
        /// After every turn with calls.
        Always = "always",
    }
}

impl ReflectionMode {
    /// Returns when a run looks back where nobody says: one that plans, after failures.
    pub const fn default_for(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Direct => Self::Off,
            Strategy::Planned => Self::OnFailure,
        }
    }
}

/// The output of an agent: its name, what it is, and its shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutputSpec {
    /// The argument of `complete_task` that carries it.
    pub name: String,
    /// What it is, for the model.
    pub description: String,
    /// Its JSON Schema.
    pub schema: Value,
}

/// Everything about a run that does not change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RunSettings {
    /// What it may use.
    pub budget: Budget,
    /// How it says that it is done.
    pub ending: Ending,
    /// What its answer has to look like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSpec>,
    /// How it goes about its task.
    pub strategy: Strategy,
    /// When it looks back.
    pub reflection: ReflectionMode,
    /// What is known about its model.
    pub model: ModelFacts,
    /// How many times in a row the same may happen before the model is told.
    pub max_repeats: u32,
    /// What happens when being told did not help.
    pub on_stuck: OnStuck,
    /// How often a run that makes no progress is helped, in whatever way, before it ends.
    pub max_rescues: u32,
    /// At how much of the model's window the conversation is summed up, in percent.
    pub compact_at_percent: u8,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            budget: Budget::default(),
            ending: Ending::Text,
            output: None,
            strategy: Strategy::Direct,
            reflection: ReflectionMode::Off,
            model: ModelFacts::default(),
            max_repeats: 3,
            on_stuck: OnStuck::Restart,
            max_rescues: 3,
            compact_at_percent: 50,
        }
    }
}
