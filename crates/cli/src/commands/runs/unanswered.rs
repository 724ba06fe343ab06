//! The questions of a run that nobody has answered: not in the run, and not in a letter that lies in its inbox
//! until somebody takes the run up.

use std::collections::BTreeSet;

use convoke::agent::Letter;
use convoke::journal::{OpenQuestion, Store, open_questions};
use convoke_core::{Event, RunId};

use super::state::State;

/// Returns how many calls of a run have an answer that it has not heard yet.
pub(super) fn letters(store: &Store, run: &RunId) -> usize {
    let letters = store.inbox(run).map(|inbox| Letter::lying_in(&inbox)).unwrap_or_default();
    let calls: BTreeSet<_> = letters.iter().map(|letter| (&letter.run, &letter.call)).collect();
    calls.len()
}

/// The questions of a run.
pub(super) struct Questions<'e> {
    /// Those that wait for an answer.
    pub(super) open: Vec<OpenQuestion<'e>>,
    /// How many have one that the run has not heard yet.
    pub(super) answered: usize,
}

impl<'e> Questions<'e> {
    pub(super) fn of(store: &Store, run: &RunId, events: &'e [Event]) -> Self {
        let mut open = open_questions(events);
        // A call that nobody works on any more hears no answer.
        if open.iter().any(|question| question.inquiry.is_some()) && !is_worked_on(store, run) {
            open.retain(|question| question.inquiry.is_none());
        }
        let all = open.len();
        let letters = store.inbox(run).map(|inbox| Letter::lying_in(&inbox)).unwrap_or_default();
        open.retain(|question| {
            let OpenQuestion { run, call, fingerprint, .. } = question;
            !letters.iter().any(|letter| letter.answers(run, call, fingerprint))
        });
        let answered = all - open.len();
        Self { open, answered }
    }
}

/// Tells whether all questions of a run have an answer that it has not heard yet.
pub(in crate::commands) fn is_answered(store: &Store, run: &RunId) -> bool {
    store.read(run).is_ok_and(|recorded| {
        let Questions { open, answered } = Questions::of(store, run, &recorded.events);
        open.is_empty() && answered > 0
    })
}

fn is_worked_on(store: &Store, run: &RunId) -> bool {
    let all = store.list().unwrap_or_default();
    all.iter().any(|summary| summary.run == *run && State::of(summary).is_worked_on())
}
