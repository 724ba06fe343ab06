//! How many calls of tools the runs of a tree have made, as its events say it: what the ledger of whoever takes the
//! tree up again goes on with.

use std::collections::HashMap;

use convoke_core::{CallId, Event, EventBody, Repeat, RunId, Status};

/// Counts calls, event by event.
#[derive(Debug, Default)]
pub(super) struct CallCount {
    /// Those of every run and of all runs below it.
    made: HashMap<RunId, u32>,
    /// Who called whom.
    callers: HashMap<RunId, RunId>,
    /// The calls under way, and what happens if they are made again.
    open: HashMap<(RunId, CallId), Repeat>,
    /// The runs that have ended, and do not wait for a person: how.
    over: HashMap<RunId, Status>,
}

impl CallCount {
    pub(super) fn take(&mut self, root: &RunId, event: &Event) {
        let run = &event.run;
        match (&event.body, &event.call) {
            (EventBody::RunStarted { .. }, _) => {
                let caller = event.parent.clone().map(|caller| (run.clone(), caller));
                self.callers.extend(caller);
            }
            (EventBody::ToolCallStarted { repeat, .. }, Some(call)) => {
                let before = self.open.insert((run.clone(), call.clone()), *repeat);
                if before.is_none() {
                    self.count(run, |calls| calls.saturating_add(1));
                }
            }
            // It is made again, whatever it does, and is counted then.
            (EventBody::ToolCallDeferred { .. }, Some(call)) => {
                let before = self.open.remove(&(run.clone(), call.clone()));
                if before.is_some() {
                    self.count(run, |calls| calls.saturating_sub(1));
                }
            }
            (EventBody::RunEnded { outcome, .. }, _) if outcome.status != Status::Parked => {
                self.over.insert(run.clone(), outcome.status);
            }
            // A run that begins anew after its end has its calls anew. For those above it they were made.
            (EventBody::RunResumed { anything_else, .. }, _) => {
                let ended = self.over.remove(run);
                let begins_anew =
                    ended.is_some_and(|status| status != Status::Cancelled || *anything_else);
                if begins_anew && run == root {
                    self.made.clear();
                    self.open.clear();
                } else if begins_anew {
                    self.made.remove(run);
                }
            }
            (body, Some(call)) if body.ends_call() => {
                self.open.remove(&(run.clone(), call.clone()));
            }
            _ => {}
        }
    }

    /// Returns what counts when the tree is taken up. Calls that are made again then are counted then.
    pub(super) fn finish(mut self) -> HashMap<RunId, u32> {
        for ((run, _), repeat) in std::mem::take(&mut self.open) {
            if repeat != Repeat::Unsafe {
                self.count(&run, |calls| calls.saturating_sub(1));
            }
        }
        self.made
    }

    /// Changes the count of a run and of all above it.
    fn count(&mut self, run: &RunId, change: impl Fn(u32) -> u32) {
        let mut next = Some(run);
        while let Some(run) = next {
            let calls = self.made.entry(run.clone()).or_default();
            *calls = change(*calls);
            next = self.callers.get(run);
        }
    }
}
