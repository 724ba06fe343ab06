//! The agents a run has called: which work, which ended, and what they are known to have used.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{CallId, RunId};
use crate::outcome::{Cause, Outcome, Status};
use crate::usage::Usage;

/// An agent that a run called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Child {
    /// Its name.
    pub name: String,
    /// The call that it last began or went on with.
    pub call: Option<CallId>,
    /// Whether its caller goes on while it works.
    pub background: bool,
    /// How it ended; nothing, while it works.
    pub outcome: Option<Outcome>,
    /// What of its use the caller has counted.
    pub counted: Usage,
    /// Whether it was stopped because its caller was, and nobody took it up since.
    pub stopped: bool,
    /// What its caller, who did not wait for it, was told of its end, if it can go on when there is a model again: it
    /// found none, or was stopped since its caller found none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// Whether it was abandoned when the user continued a copy of the run in another way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abandoned: bool,
}

/// All agents that a run called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Children(BTreeMap<RunId, Child>);

impl Children {
    pub(super) fn spawn(
        &mut self,
        child: &RunId,
        name: &str,
        call: Option<&CallId>,
        background: bool,
    ) {
        let call = call.cloned();
        let known = self.0.entry(child.clone()).or_insert_with(|| Child {
            name: name.to_owned(),
            call: None,
            background,
            outcome: None,
            counted: Usage::default(),
            stopped: false,
            told: None,
            abandoned: false,
        });
        (known.call, known.background, known.outcome) = (call, background, None);
        (known.stopped, known.told, known.abandoned) = (false, None, false);
    }

    /// An agent has ended: because its caller is being stopped, or for a reason of its own. One in the background
    /// whose caller is not told has nothing to tell but that: it may have stopped before its caller noticed.
    pub(super) fn end(
        &mut self,
        child: &RunId,
        outcome: &Outcome,
        usage: Usage,
        (stops, told): (bool, bool),
    ) {
        if let Some(known) = self.0.get_mut(child) {
            let with_caller = stops || (known.background && !told);
            known.stopped = with_caller && !known.abandoned && outcome.status == Status::Cancelled;
            known.outcome = Some(outcome.clone());
            known.counted += usage;
        }
    }

    /// The caller of an agent is told of its end, which may have come since that `found_no_model`.
    pub(super) fn tell(&mut self, child: &RunId, message: &str, found_no_model: bool) {
        let Some(known) = self.0.get_mut(child).filter(|known| known.background) else { return };
        let can_go_on = known.outcome.as_ref().is_some_and(|outcome| {
            let stopped = found_no_model && outcome.status == Status::Cancelled;
            stopped || outcome.cause == Cause::ModelUnavailable
        });
        known.told = can_go_on.then(|| message.to_owned());
    }

    pub(super) const fn all(&self) -> &BTreeMap<RunId, Child> {
        &self.0
    }

    /// Those that have not ended, or wait, are not taken up any more.
    pub(super) fn abandon(&mut self) {
        for child in self.0.values_mut() {
            if child.outcome.as_ref().is_none_or(|outcome| outcome.status == Status::Parked) {
                (child.abandoned, child.outcome) = (true, None);
            }
        }
    }

    /// Tells whether some work on without their caller.
    pub(super) fn work_on(&self) -> bool {
        let works = |child: &Child| child.outcome.is_none() && !child.abandoned;
        self.0.values().any(|child| child.background && works(child))
    }

    /// Tells whether an agent works, or worked, without its caller.
    pub(super) fn is_in_background(&self, child: &RunId) -> bool {
        self.0.get(child).is_some_and(|child| child.background)
    }

    /// Returns the names of the agents that a call began: as the runtime knows them, and as their caller does.
    pub(super) fn names(&self, caller: &RunId, call: &CallId) -> Vec<String> {
        let begun = self.0.iter().filter(|(_, child)| child.call.as_ref() == Some(call));
        let names = begun.flat_map(|(id, _)| {
            let short = id.as_str().strip_prefix(caller.as_str());
            let short = short.and_then(|short| short.strip_prefix('-'));
            [Some(id.as_str()), short].into_iter().flatten().map(str::to_owned)
        });
        names.collect()
    }

    /// Tells whether the agent of a call was not allowed what it wanted.
    pub(super) fn was_denied(&self, call: &CallId) -> bool {
        let denied = |child: &Child| {
            child.call.as_ref() == Some(call)
                && !child.background
                && child.outcome.as_ref().is_some_and(|it| it.status == Status::Denied)
        };
        self.0.values().any(denied)
    }

    /// Returns the agent that a call began or went on with, and that found no model. Where several had the same call,
    /// nobody knows which is meant.
    pub(super) fn without_model(&self, call: &CallId) -> Option<(&RunId, &Child)> {
        let mut called = self.0.iter().filter(|(_, child)| child.call.as_ref() == Some(call));
        let only = called.next().filter(|_| called.next().is_none())?;
        let no_model = |outcome: &Outcome| outcome.cause == Cause::ModelUnavailable;
        let (_, child) = only;
        (!child.background && child.outcome.as_ref().is_some_and(no_model)).then_some(only)
    }

    /// Returns those in the background that can go on when there is a model again, and what was said of their ends.
    pub(super) fn aside_without_model(&self) -> impl Iterator<Item = ((&RunId, &Child), &str)> {
        let callable = self.0.iter().filter(|(_, child)| child.call.is_some());
        callable.filter_map(|(id, child)| Some(((id, child), child.told.as_deref()?)))
    }

    /// Returns what was said of the ends of these, where they can go on and their caller did not wait for them.
    pub(super) fn told<'a>(&'a self, agents: &'a [RunId]) -> impl Iterator<Item = &'a str> {
        agents.iter().filter_map(move |id| self.0.get(id)?.told.as_deref())
    }

    /// Those in the background go on, of agents that had ended; returns what was said of their ends.
    pub(super) fn go_on_aside(&mut self, agents: &[RunId]) -> Vec<String> {
        let mut told = Vec::new();
        for id in agents {
            let Some(child) = self.0.get_mut(id) else { continue };
            let Some(said) = child.told.take() else { continue };
            child.outcome = None;
            told.push(said);
        }
        told
    }

    /// Agents that had ended go on; returns the calls that they go on with.
    pub(super) fn go_on(&mut self, agents: &[RunId]) -> Vec<CallId> {
        let mut calls = Vec::new();
        for id in agents {
            let Some(child) = self.0.get_mut(id) else { continue };
            child.outcome = None;
            calls.extend(child.call.clone());
        }
        calls
    }

    /// Returns those that are not done and are taken up together with their caller, if that has nothing else to
    /// do: by a call that is `open`, or because they work without it.
    pub(super) fn unfinished<'a>(
        &'a self,
        open: impl Fn(&CallId) -> bool + 'a,
    ) -> impl Iterator<Item = (&'a RunId, &'a Child)> {
        self.0.iter().filter(move |(_, child)| {
            let is_waited_for = child.background || child.call.as_ref().is_some_and(&open);
            let goes_on = match child.outcome.as_ref().map(|outcome| outcome.status) {
                None => true,
                Some(Status::Parked) => child.background,
                Some(_) => child.stopped,
            };
            is_waited_for && goes_on && !child.abandoned
        })
    }

    /// Tells how many wait for a person, without their caller.
    pub(super) fn parked(&self) -> usize {
        let parked = |outcome: &Option<Outcome>| {
            outcome.as_ref().is_some_and(|it| it.status == Status::Parked)
        };
        self.0.values().filter(|child| child.background && parked(&child.outcome)).count()
    }

    /// Whoever worked on them is gone: those that wait for a person are taken up again as well. So are those
    /// that were stopped together with their caller, by a call that is `open`, unless that has something else to
    /// do now.
    pub(super) fn resume(&mut self, anything_else: bool, open: impl Fn(&CallId) -> bool) {
        for child in self.0.values_mut() {
            let status = child.outcome.as_ref().map(|outcome| outcome.status);
            if child.background && status == Some(Status::Parked) {
                child.outcome = None;
            }
            let waited_for = child.background || child.call.as_ref().is_some_and(&open);
            if child.stopped && waited_for && !anything_else {
                child.outcome = None;
            }
            // Who is not taken up now is given up.
            child.stopped = false;
        }
    }
}
