//! What programs read: the stream of events, or one object at the end.

use convoke_core::{Cause, Millis, Outcome, Status, TaskContext, Usage, WorkspaceReport};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::ending;
use super::tree::{AgentReport, ModelFailure, Totals, Tree};
use crate::failure::Failure;
use crate::output::Stream;

/// Writes an event or the report as one line, and hands it over at once: whoever reads wants to see it
/// now.
pub(crate) fn line(value: &impl Serialize, out: &Stream) {
    match serde_json::to_string(value) {
        Ok(line) => {
            out.line(line);
            out.flush();
        }
        Err(error) => out.fail(error.into()),
    }
}

/// How a run ended: all of `--output json`, and the last line of `--output stream-json`. Of a run that
/// never began there is only how it ended, and why.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename = "report", rename_all = "camelCase")]
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
    /// Why it did not reach its goal, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hints: Vec<String>,
    /// Why the model did not answer when it was last asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ModelFailure>,
    /// What there is to know that stopped nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    /// What all agents used.
    #[serde(default)]
    pub(crate) usage: Usage,
    /// Turns of the main agent.
    #[serde(default)]
    pub(crate) turns: u32,
    /// Calls of tools by all agents that began.
    #[serde(default)]
    pub(crate) tool_calls: u32,
    /// The agents that were called, in the order in which they ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) agents: Vec<AgentReport>,
    /// From the first event to the last.
    #[serde(default)]
    pub(crate) duration_ms: Millis,
    /// The model of the main agent.
    #[serde(default)]
    pub(crate) model: String,
    /// The run.
    #[serde(default)]
    pub(crate) run: String,
    /// What was done, planned and learned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<TaskContext>,
    /// What it changed in its own workspace, where it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<WorkspaceReport>,
    /// What the command exits with.
    pub(crate) exit_code: u8,
}

impl RunReport {
    /// Reports on a run that ended.
    pub(crate) fn of(tree: &Tree, task: Option<&TaskContext>) -> Option<Self> {
        let ended = tree.ended()?;
        let report = Self::new(tree.totals(), &ended.outcome, ended.answer.clone());
        Some(Self { task: task.cloned(), ..report })
    }

    /// Reports on a run of which the end is known otherwise.
    pub(crate) fn new(totals: &Totals, outcome: &Outcome, answer: Option<Value>) -> Self {
        let failure = ending::failure(totals, outcome);
        Self {
            status: outcome.status,
            cause: outcome.cause,
            recovered: outcome.recovered,
            answer,
            partial: outcome.partial.clone(),
            message: failure.as_ref().map(ToString::to_string),
            hints: failure.iter().flat_map(Failure::hints).map(str::to_owned).collect(),
            error: totals.error.clone(),
            warnings: totals.warnings.clone(),
            usage: totals.usage,
            turns: totals.turns,
            tool_calls: totals.tool_calls,
            agents: totals.agents.clone(),
            duration_ms: Millis::new(totals.elapsed(totals.latest)),
            model: totals.model.clone(),
            run: totals.run.clone(),
            task: None,
            workspace: totals.workspace.clone(),
            exit_code: outcome.cause.exit_code() as u8,
        }
    }
}
