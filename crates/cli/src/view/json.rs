//! What programs read: the stream of events, or one object at the end.

use convoke_core::{Cause, Event, Millis, Outcome, Status, Usage};
use serde::Serialize;
use serde_json::Value;

use super::tree::{Totals, Tree, between};
use crate::output::Stream;

/// Writes an event as one line, and hands it over at once: whoever reads wants to see it now.
pub(crate) fn line(event: &Event, out: &Stream) {
    match serde_json::to_string(event) {
        Ok(line) => {
            out.line(line);
            out.flush();
        }
        Err(error) => out.fail(error.into()),
    }
}

/// How a run ended, as one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunReport {
    /// The ending in one word.
    pub(crate) status: Status,
    /// Why it ended.
    pub(crate) cause: Cause,
    /// Whether a last attempt, beyond the cause, still gave an answer.
    pub(crate) recovered: bool,
    /// Its answer; null if it gave none.
    pub(crate) answer: Option<Value>,
    /// What there was when it ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) partial: Option<Value>,
    /// What happened and what to do, in words, where something went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// What all agents used.
    pub(crate) usage: Usage,
    /// Turns of the main agent.
    pub(crate) turns: u32,
    /// Calls of tools by the main agent.
    pub(crate) tool_calls: u32,
    /// From the first event to the last.
    pub(crate) duration_ms: Millis,
    /// The model of the main agent.
    pub(crate) model: String,
    /// The run.
    pub(crate) run: String,
    /// What the command exits with.
    pub(crate) exit_code: u8,
}

impl RunReport {
    /// Reports on a run that ended.
    pub(crate) fn of(tree: &Tree) -> Option<Self> {
        let ended = tree.ended()?;
        Some(Self::new(tree.totals(), &ended.outcome, ended.answer.clone()))
    }

    /// Reports on a run of which the end is known otherwise.
    pub(crate) fn new(totals: &Totals, outcome: &Outcome, answer: Option<Value>) -> Self {
        Self {
            status: outcome.status,
            cause: outcome.cause,
            recovered: outcome.recovered,
            answer,
            partial: outcome.partial.clone(),
            message: outcome.message.clone(),
            usage: totals.usage,
            turns: totals.turns,
            tool_calls: totals.tool_calls,
            duration_ms: Millis::new(between(totals.started, totals.latest)),
            model: totals.model.clone(),
            run: totals.run.clone(),
            exit_code: outcome.cause.exit_code() as u8,
        }
    }
}
