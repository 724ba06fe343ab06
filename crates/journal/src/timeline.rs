//! What happened in a run, in the shape in which a person reads it.
//!
//! A [`Timeline`] is folded from events: agents, and for each of them [`Item`]s in the order in which they
//! began. It takes any beginning of a run, finished or not, and any events at all: what does not fit is
//! kept as a plain line, and what was never finished is marked so. Every event is in it, alone or as a part
//! of the item it belongs to.
//!
//! It borrows the events, and computes nothing about how it is shown. Times are counted from the first
//! event, so that bars can be drawn.

mod fold;
mod item;

use std::time::Duration;

use convoke_core::{AgentPath, Event, Outcome, RunId, Status, Timestamp, Usage};
use serde_json::Value;

pub use self::item::{
    Approval, Call, CallState, Item, ItemKind, ModelCall, ModelFailure, ModelState, Note, Retry,
    Tone, Turn,
};

/// What happened in a run and in those it started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline<'e> {
    /// When the first event came.
    pub started: Timestamp,
    /// From the first event to the last.
    pub elapsed: Duration,
    /// When nothing was under way, in order.
    pub gaps: Vec<Gap>,
    /// Every agent, in the order in which they appeared.
    pub agents: Vec<Agent<'e>>,
    /// The agents that no other agent in here started; usually the main agent alone.
    pub roots: Vec<AgentIndex>,
}

/// The place of an agent in [`Timeline::agents`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentIndex(usize);

impl AgentIndex {
    /// Returns the place, from 0.
    pub const fn get(self) -> usize {
        self.0
    }
}

/// A time in which nothing was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When it began and how long it was.
    pub span: Span,
    /// Why.
    pub reason: GapReason,
}

/// Why nothing was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapReason {
    /// The process was gone, and another one went on with the run.
    Interrupted,
    /// The run had ended; later somebody said something more.
    Idle,
}

/// When something happened, counted from the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// When it began.
    pub start: Duration,
    /// How long it took; up to the last event, if it has not ended.
    pub duration: Duration,
    /// Whether nothing says that it ended.
    pub open: bool,
}

impl Span {
    /// Returns when it ended, or the time of the last event.
    pub const fn end(&self) -> Duration {
        self.start.saturating_add(self.duration)
    }
}

/// One agent: a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent<'e> {
    /// Its run.
    pub run: &'e RunId,
    /// Which agent acts, from the root down.
    pub path: &'e AgentPath,
    /// Its name.
    pub name: &'e str,
    /// The model that works; empty until that is known.
    pub model: &'e str,
    /// The agent that started it.
    pub parent: Option<AgentIndex>,
    /// How many agents are above it.
    pub depth: usize,
    /// From its first event to its end.
    pub span: Span,
    /// Its standing instructions.
    pub system: &'e str,
    /// The names of the tools it may call.
    pub tools: Vec<&'e str>,
    /// What happened, in order.
    pub items: Vec<Item<'e>>,
    /// How it ended; nothing, if it has not, or went on since.
    pub end: Option<End<'e>>,
    /// What its parent was told about its end.
    pub reported: Option<Reported<'e>>,
    /// What its own model calls used, without those of other agents.
    pub usage: Usage,
    /// How many turns began.
    pub turns: u32,
    /// How many calls of tools began. One that is made again after a restart counts once.
    pub calls: u32,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End<'e> {
    /// How.
    pub outcome: &'e Outcome,
    /// Its answer.
    pub answer: Option<&'e Value>,
    /// Whether the answer is what the model said last, word for word.
    pub is_said: bool,
    /// What it and its children used.
    pub usage: Usage,
}

/// What a parent was told about the end of an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reported<'e> {
    /// How it ended.
    pub outcome: &'e Outcome,
    /// What it and its children used.
    pub usage: Usage,
}

impl<'e> Timeline<'e> {
    /// Folds events, in the order in which they came.
    pub fn of(events: &'e [Event]) -> Self {
        fold::fold(events)
    }

    /// Returns an agent.
    pub fn agent(&self, index: AgentIndex) -> Option<&Agent<'e>> {
        self.agents.get(index.0)
    }

    /// Returns what an agent is called: its name, with a number from the second of that name on.
    pub fn label(&self, index: AgentIndex) -> String {
        let Some(agent) = self.agent(index) else { return String::new() };
        let same = self.agents.iter().take(index.0 + 1).filter(|other| other.name == agent.name);
        match same.count() {
            0 | 1 => agent.name.to_owned(),
            several => format!("{} {several}", agent.name),
        }
    }

    /// Returns the main agent, if there is any event.
    pub fn main(&self) -> Option<&Agent<'e>> {
        self.agents.first()
    }

    /// Returns what all agents used: what the end of the run says, or the sum of what is known.
    pub fn usage(&self) -> Usage {
        match self.main().and_then(|agent| agent.end) {
            // Agents that wait with it have not told it yet what they used.
            Some(end) if end.outcome.status != Status::Parked => end.usage,
            _ => self.agents.iter().map(|agent| agent.usage).sum(),
        }
    }

    /// Returns how many calls of tools began, by all agents.
    pub fn calls(&self) -> u64 {
        self.agents.iter().map(|agent| u64::from(agent.calls)).sum()
    }

    /// Returns how long something was under way: all the time, without the gaps.
    pub fn working(&self) -> Duration {
        let gaps = self.gaps.iter().map(|gap| gap.span.duration).sum();
        self.elapsed.saturating_sub(gaps)
    }
}
