//! What is going on, folded from the events: a tree of agents, their calls and what their models do.
//!
//! [`Tree::fold`] takes an event and gives back what there is to tell: things that ended or were worth
//! a word, as [`Entry`]s. Only what is still under way stays in the tree, so that it does not grow with
//! the length of a run. Nothing here prints, waits or reads a clock; all texts are safe to show.

mod activity;
mod agent;
mod entry;
mod fold;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use convoke_core::{
    Budget, CallId, Cause, Event, EventBody, Limit, Millis, Outcome, RunId, Status, Timestamp,
    Usage, WorkspaceReport,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::activity::Activity;
pub(crate) use self::agent::{Agent, CallState, OpenCall};
pub(crate) use self::entry::{CallEnd, End, Entry, Said, Weight, Who};

/// How many warnings are kept for the report.
const MAX_WARNINGS: usize = 100;
/// How many agents are kept for the report.
const MAX_AGENTS: usize = 1_000;
/// How many names of agents are told apart by numbers.
const MAX_NAMES: usize = 256;
/// How many agents are known by their names after they ended.
const MAX_LABELS: usize = 4_096;

/// Agents at work, and what they used so far.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    root: Option<RunId>,
    /// Those that have not ended, by their runs.
    agents: BTreeMap<RunId, Agent>,
    /// How many agents had each name.
    names: BTreeMap<String, u32>,
    /// The names of the agents that were called.
    called: BTreeSet<String>,
    /// What agents changed in workspaces of their own.
    changed: BTreeMap<RunId, WorkspaceReport>,
    /// What each is called: one that goes on after its end keeps its name.
    labels: BTreeMap<RunId, String>,
    begun: u64,
    /// Calls that began and have no answer.
    calls: BTreeSet<(RunId, CallId)>,
    totals: Totals,
    before: Before,
    ended: Option<Ended>,
}

/// What a run had used before it was taken up again, which is not counted, and what it may use.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Before {
    /// The turns it took.
    pub(crate) turns: u32,
    /// What it spent.
    pub(crate) usage: Usage,
    /// What it may use.
    pub(crate) budget: Budget,
}

/// What the whole tree used.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    /// The run.
    pub(crate) run: String,
    /// The model of the main agent.
    pub(crate) model: String,
    /// Turns of the main agent.
    pub(crate) turns: u32,
    /// Calls of tools by all agents that began.
    pub(crate) tool_calls: u32,
    /// The agents that ended, but for the main one.
    pub(crate) agents: Vec<AgentReport>,
    /// What the main agent may use.
    pub(crate) budget: Budget,
    /// Tokens and money of all agents.
    pub(crate) usage: Usage,
    /// The limit of the main agent that was reached.
    pub(crate) exceeded: Option<Limit>,
    /// Calls that a person or the policy said no to.
    pub(crate) denied: u32,
    /// Calls that a person or a hook said no to, whatever the mode.
    pub(crate) refused: u32,
    /// Calls that nobody answered about in time.
    pub(crate) unanswered: u32,
    /// Why the main agent's model did not answer when it was last asked.
    pub(crate) error: Option<ModelFailure>,
    /// What there was to know that stopped nothing.
    pub(crate) warnings: Vec<String>,
    /// What the main agent changed in its own workspace.
    pub(crate) workspace: Option<WorkspaceReport>,
    /// When the first event came.
    pub(crate) started: Timestamp,
    /// Whether the run is kept, so that it can be taken up again.
    pub(crate) is_kept: bool,
    /// Whether what it waits for has an answer already, which it could not use yet.
    pub(crate) is_answered: bool,
    /// When the last event came.
    pub(crate) latest: Timestamp,
}

/// What came of an agent that was called.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentReport {
    /// Its name, numbered where several have the same.
    pub(crate) agent: String,
    /// Its run.
    pub(crate) run: String,
    /// How it ended, in one word.
    pub(crate) status: Status,
    /// Why.
    pub(crate) cause: Cause,
    /// How many turns it took.
    pub(crate) turns: u32,
    /// What it used, the agents it called included.
    pub(crate) usage: Usage,
    /// How long it took.
    pub(crate) duration_ms: Millis,
    /// What it changed in its own workspace, where it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<WorkspaceReport>,
}

/// A model that did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelFailure {
    /// What happened, in one word.
    pub(crate) kind: String,
    /// Whose model it is.
    pub(crate) provider: String,
    /// The HTTP status, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// What happened, with the provider's own words.
    pub(crate) message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

/// How the run ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    /// How.
    pub(crate) outcome: Outcome,
    /// Its answer.
    pub(crate) answer: Option<Value>,
}

impl Totals {
    /// Returns how long it has taken.
    pub(crate) fn elapsed(&self, now: Timestamp) -> Duration {
        between(self.started, now)
    }

    /// Keeps a warning for the report.
    pub(crate) fn warn(&mut self, message: &str) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(message.to_owned());
        }
    }
}

impl Tree {
    /// Counts from here on: the run is taken up again.
    pub(crate) fn after(before: Before) -> Self {
        let totals = Totals { budget: before.budget.clone(), ..Totals::default() };
        Self { totals, before, ..Self::default() }
    }

    /// Returns what an agent is called that works.
    pub(crate) fn label(&self, run: &RunId) -> Option<&str> {
        self.agents.get(run).map(|agent| agent.who.label.as_str())
    }

    /// Notes whether the run is kept.
    pub(crate) const fn keep(&mut self, is_kept: bool) {
        self.totals.is_kept = is_kept;
    }

    /// Notes that what the run waits for has an answer already.
    pub(crate) const fn answered(&mut self) {
        self.totals.is_answered = true;
    }

    /// Takes in an event, and returns what there is to tell because of it.
    pub(crate) fn fold(&mut self, event: &Event) -> Vec<Entry> {
        if self.root.is_none() {
            self.root = Some(event.run.clone());
            self.totals.run = event.run.to_string();
            self.totals.started = event.ts;
        }
        if let EventBody::RunResumed { .. } | EventBody::RunForked { .. } = event.body
            && self.is_root(event)
            && self.totals.latest > self.totals.started
        {
            // While nobody worked on it, no time passed for it.
            let pause = between(self.totals.latest, event.ts);
            self.totals.started = self.totals.started.after(pause);
        }
        self.totals.latest = self.totals.latest.max(event.ts);
        if let EventBody::AgentSpawned { name, .. } = &event.body
            && self.called.len() < MAX_NAMES
        {
            self.called.insert(name.clone());
        }
        fold::fold(self, event)
    }

    /// Returns the agents at work, in the order in which they began.
    pub(crate) fn agents(&self) -> Vec<&Agent> {
        let mut agents: Vec<&Agent> = self.agents.values().collect();
        agents.sort_by_key(|agent| agent.number);
        agents
    }

    /// Returns what was used so far.
    pub(crate) const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Keeps a warning that is in no event.
    pub(crate) fn warn(&mut self, message: &str) {
        self.totals.warn(message);
    }

    /// Returns how the run ended, if it did.
    pub(crate) const fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    /// Tells whether an agent of this name was called.
    pub(crate) fn has_called(&self, agent: &str) -> bool {
        self.called.contains(agent)
    }

    /// Tells whether an event is about the main agent.
    pub(crate) fn is_root(&self, event: &Event) -> bool {
        self.root.as_ref() == Some(&event.run)
    }
}

/// Returns how much later the second moment is.
pub(crate) fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    let millis = later.as_millis().saturating_sub(earlier.as_millis());
    Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}
