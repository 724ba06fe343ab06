//! An agent at work: its model and its open calls.

use std::time::Duration;

use convoke_core::{CallId, Event, Timestamp};

use super::activity::{Activity, Tail};
use super::between;
use super::entry::Who;
use crate::view::brief::one_line;

/// An agent that has not ended.
#[derive(Debug)]
pub(crate) struct Agent {
    /// Its run, its name for people, and how deep in the tree it is.
    pub(crate) who: Who,
    /// Its place in the order in which agents began.
    pub(super) number: u64,
    /// What it was asked to do.
    pub(crate) task: String,
    /// What its model does.
    pub(crate) activity: Activity,
    /// Since when.
    pub(super) since: Timestamp,
    /// Its calls that have no answer yet, in the order in which they were asked for.
    pub(crate) calls: Vec<OpenCall>,
    /// Its turn.
    pub(crate) turn: u32,
    /// When it began.
    pub(crate) started: Timestamp,
    /// Whether an answer in words ends it.
    pub(super) ends_by_text: bool,
}

/// A call that has no answer yet.
#[derive(Debug)]
pub(crate) struct OpenCall {
    pub(super) id: CallId,
    /// The tool.
    pub(crate) name: String,
    /// What it is about.
    pub(crate) summary: String,
    /// How far it is.
    pub(crate) state: CallState,
    /// Since when.
    pub(super) since: Timestamp,
    /// The end of what it says.
    pub(crate) tail: Tail,
    /// How much is done, from 0 to 1.
    pub(crate) fraction: Option<f64>,
    /// Whether it is another agent, which speaks for itself.
    pub(crate) is_agent: bool,
    /// Whether the policy had a word about it.
    pub(super) was_judged: bool,
}

/// How far a call is that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallState {
    /// It was asked for.
    Waiting,
    /// Somebody is asked about it.
    Asking,
    /// It runs.
    Running,
}

impl Agent {
    pub(super) fn new(event: &Event, label: String, number: u64) -> Self {
        let depth = event.agent.as_str().matches('/').count();
        Self {
            who: Who { run: event.run.clone(), label, depth },
            number,
            task: String::new(),
            activity: Activity::None,
            since: event.ts,
            calls: Vec::new(),
            turn: 0,
            started: event.ts,
            ends_by_text: true,
        }
    }

    /// Returns the last part of an agent's path, safe to show.
    pub(super) fn name_in(event: &Event) -> String {
        let path = event.agent.as_str();
        one_line(path.rsplit('/').next().unwrap_or(path), 40)
    }

    /// Returns how long its model has been at it.
    pub(crate) fn active_for(&self, now: Timestamp) -> Duration {
        between(self.since, now)
    }

    /// Its model does something else now.
    pub(super) fn turn_to(&mut self, activity: Activity, at: Timestamp) {
        self.activity = activity;
        self.since = at;
    }

    pub(super) fn call(&mut self, id: Option<&CallId>) -> Option<&mut OpenCall> {
        let id = id?;
        self.calls.iter_mut().find(|call| call.id == *id)
    }

    /// Takes a call out: it ended.
    pub(super) fn close(&mut self, id: Option<&CallId>) -> Option<OpenCall> {
        let index = self.calls.iter().position(|call| Some(&call.id) == id)?;
        Some(self.calls.remove(index))
    }
}

impl OpenCall {
    /// Returns how long it has been in its state.
    pub(crate) fn lasts(&self, now: Timestamp) -> Duration {
        between(self.since, now)
    }

    pub(super) fn enter(&mut self, state: CallState, at: Timestamp) {
        self.state = state;
        self.since = at;
    }
}
