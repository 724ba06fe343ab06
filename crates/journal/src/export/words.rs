//! What things are called: the same words on the page and in Markdown.

use convoke_core::policy::RuleSpec;
use convoke_core::{Cause, Outcome, Part, Purpose, Status, StopReason};
use serde::Serialize;
use serde_json::Value;

use super::amounts::size;
use crate::timeline::{Agent, CallState, GapReason, ItemKind, ModelState, Timeline};

/// How something ended. Each has a word and a sign of its own, so that no colour is needed to tell them
/// apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    /// Well.
    Good,
    /// Badly.
    Bad,
    /// It was not allowed.
    Denied,
    /// It was stopped, by somebody or by a limit.
    Stopped,
    /// It has not ended.
    Open,
    /// It is neither good nor bad.
    Neutral,
}

impl Mood {
    /// Returns the sign.
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Bad => "✕",
            Self::Denied => "⊘",
            Self::Stopped => "■",
            Self::Open => "…",
            Self::Neutral => "·",
        }
    }
}

/// Returns how an agent ended, in a word.
pub(super) fn ending(agent: &Agent<'_>) -> (Mood, String) {
    match agent.end {
        Some(end) => outcome(end.outcome),
        None => match agent.reported {
            Some(reported) => outcome(reported.outcome),
            None => (Mood::Open, "not finished".to_owned()),
        },
    }
}

/// Returns how a run ended, in a few words: `completed`, `limited: max turns, recovered`.
pub(super) fn outcome(outcome: &Outcome) -> (Mood, String) {
    let mood = match outcome.status {
        Status::Completed => Mood::Good,
        Status::Failed | Status::Stuck => Mood::Bad,
        Status::Denied => Mood::Denied,
        Status::Limited | Status::Cancelled => Mood::Stopped,
        Status::Parked => Mood::Open,
    };
    let mut text = word(&outcome.status);
    let cause = word(&outcome.cause);
    if cause != text && !matches!(outcome.cause, Cause::Goal | Cause::Error) {
        text = format!("{text}: {cause}");
    }
    if outcome.recovered {
        text.push_str(", recovered");
    }
    (mood, text)
}

/// Returns what came of a call, in a word.
pub(super) const fn call_state(state: &CallState<'_>) -> (Mood, &'static str) {
    match state {
        CallState::Requested => (Mood::Open, "not started"),
        CallState::Waiting | CallState::Deferred(_) => (Mood::Open, "waits"),
        CallState::Running => (Mood::Open, "not finished"),
        CallState::Completed(_) => (Mood::Good, "ok"),
        CallState::Failed(_) => (Mood::Bad, "failed"),
        CallState::Denied(_) => (Mood::Denied, "denied"),
        CallState::Interrupted => (Mood::Stopped, "interrupted"),
    }
}

/// Returns what came of asking a model, where that is worth a word.
pub(super) const fn model_state(state: &ModelState<'_>) -> (Mood, &'static str) {
    match state {
        ModelState::Open => (Mood::Open, "not finished"),
        ModelState::Answered(StopReason::Done) => (Mood::Neutral, ""),
        ModelState::Answered(StopReason::Length) => (Mood::Stopped, "cut off"),
        ModelState::Answered(StopReason::Refused) => (Mood::Denied, "refused"),
        ModelState::Answered(_) => (Mood::Neutral, "stopped"),
        ModelState::Failed(_) => (Mood::Bad, "failed"),
        ModelState::Interrupted => (Mood::Stopped, "interrupted"),
    }
}

/// Returns what a model was asked for.
pub(super) const fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Main => "Model",
        Purpose::Grace => "Last answer",
        Purpose::Compact => "Summing up",
        Purpose::Reflect => "Looking back",
        Purpose::Plan => "Planning",
    }
}

/// Returns what to say of a gap, after its length.
pub(super) const fn gap(reason: GapReason) -> &'static str {
    match reason {
        GapReason::Interrupted => "later, in another process",
        GapReason::Idle => "later",
    }
}

/// Returns the word a value has in JSON, with spaces.
pub(super) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word.replace('_', " "),
        _ => String::new(),
    }
}

/// Returns what a part is that cannot be shown as text.
pub(super) fn part(part: &Part) -> String {
    match part {
        Part::Text { text } | Part::Thought { text } => text.clone(),
        Part::ToolCall(call) => format!("[call of {}]", call.name),
        Part::ToolResult { call, .. } => format!("[result of {call}]"),
        Part::Media { mime, data } => format!("[{mime}, {}]", size(data.len() / 4 * 3)),
        Part::Link { uri, title } => match title {
            Some(title) => format!("[{title}: {uri}]"),
            None => format!("[{uri}]"),
        },
        Part::Opaque { provider, .. } => format!("[a part that only {provider} understands]"),
        _ => "[a part of an unknown kind]".to_owned(),
    }
}

/// Returns parts as one text.
pub(super) fn parts(content: &[Part]) -> String {
    content.iter().map(part).collect::<Vec<_>>().join("\n")
}

/// Returns JSON as a person reads it: text as it is, anything else indented.
pub(super) fn json(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

/// Returns what the main agent was asked first.
pub(super) fn task<'t>(timeline: &'t Timeline<'_>) -> &'t str {
    let items = timeline.main().map(|agent| agent.items.as_slice()).unwrap_or_default();
    let asked = items.iter().find_map(|item| match &item.kind {
        ItemKind::Asked { text, .. } => Some(text.as_str()),
        _ => None,
    });
    asked.map(str::trim).filter(|text| !text.is_empty()).unwrap_or("A run")
}

/// Returns what rules hold for, in a few words.
pub(super) fn rules(rules: &[RuleSpec]) -> String {
    rules.iter().map(RuleSpec::shown).collect::<Vec<_>>().join("; ")
}
