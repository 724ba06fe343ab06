//! Whether journals are what was recorded.

use convoke::journal::{JournalError, Recorded, Vouched};
use convoke_core::{Cause, Event, EventBody, ExitCode, RunId};
use serde::Serialize;

use super::super::named;
use crate::failure::Failure;
use crate::output::{Output, Style};

/// How many runs are named before only their number is told.
const NAMED: usize = 5;

/// What came of verifying a journal.
pub(super) struct Verification {
    pub(super) run: RunId,
    pub(super) verified: Verified,
}

/// Whether a journal is what was recorded.
pub(super) enum Verified {
    /// It is, as far as its head goes.
    Intact { events: usize, vouched_up_to: u64 },
    /// Its lines fit each other, and there is no head to hold them against.
    Unverified { events: usize },
    /// It is not.
    Damaged(Failure),
    /// It is not there, and its head is.
    Gone(Failure),
}

/// The same as programs read it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Told<'v> {
    #[serde(rename = "type")]
    kind: &'static str,
    run: &'v RunId,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vouched_up_to: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl Verified {
    pub(super) fn of(run: &RunId, recorded: &Recorded) -> Self {
        let events = recorded.events.len();
        if let Some(problem) = recorded.problem(run) {
            return Self::unreadable(&problem);
        }
        let ends = |event: &Event| matches!(event.body, EventBody::RunEnded { .. });
        let has_ended = recorded.events.last().is_some_and(ends);
        // One that goes on may be in the middle of a line.
        if let (true, bytes @ 1..) = (has_ended, recorded.torn) {
            return Self::unreadable(&JournalError::Trailing { run: run.clone(), bytes });
        }
        match recorded.vouched {
            Vouched::UpTo(seq) => Self::Intact { events, vouched_up_to: seq },
            Vouched::NoHead => Self::Unverified { events },
            Vouched::DamagedHead => {
                Self::unreadable(&JournalError::DamagedHead { run: run.clone() })
            }
        }
    }

    /// A run that was interrupted before anything was recorded has nothing to verify.
    pub(super) fn unreadable(error: &JournalError) -> Self {
        match error {
            JournalError::Empty { .. } => Self::Unverified { events: 0 },
            error => Self::Damaged(named::failure(error)),
        }
    }
}

impl Verification {
    /// A run of which nothing but a head is left.
    pub(super) fn gone(run: RunId) -> Self {
        let failure = named::failure(&JournalError::Gone { run: run.clone() });
        Self { run, verified: Verified::Gone(failure) }
    }

    pub(super) fn told(&self) -> Told<'_> {
        let (status, events, vouched_up_to, problem) = match &self.verified {
            Verified::Intact { events, vouched_up_to } => {
                ("intact", Some(*events), Some(*vouched_up_to), None)
            }
            Verified::Unverified { events } => ("unverified", Some(*events), None, None),
            Verified::Damaged(failure) => ("damaged", None, None, Some(failure.to_string())),
            Verified::Gone(failure) => ("gone", None, None, Some(failure.to_string())),
        };
        Told { kind: "verification", run: &self.run, status, events, vouched_up_to, problem }
    }
}

/// Says for which runs nothing vouches.
pub(super) fn say_unverified(verifications: &[Verification], output: &Output) {
    let is_unverified =
        |found: &&Verification| matches!(found.verified, Verified::Unverified { .. });
    let unverified: Vec<&str> =
        verifications.iter().filter(is_unverified).map(|found| found.run.as_str()).collect();
    if unverified.is_empty() || output.is_quiet() {
        return;
    }
    let names = match unverified.get(..NAMED) {
        Some(first) if unverified.len() > NAMED => {
            format!("{} and {} more", first.join(", "), unverified.len() - NAMED)
        }
        _ => unverified.join(", "),
    };
    let line = format!("no head is kept that vouches for: {names}");
    output.err.line(output.err.paint(Style::Dim, line));
}

/// Fails where a journal is not what was recorded.
pub(super) fn end(verifications: &[Verification]) -> Result<ExitCode, Failure> {
    let damaged: Vec<String> = verifications
        .iter()
        .filter_map(|found| match &found.verified {
            Verified::Damaged(failure) | Verified::Gone(failure) => Some(failure.to_string()),
            Verified::Intact { .. } | Verified::Unverified { .. } => None,
        })
        .collect();
    match damaged.as_slice() {
        [] => Ok(ExitCode::Done),
        [one] => Err(Failure::new(Cause::State, one.clone())),
        several => {
            let count = several.len();
            let message = format!("{count} journals are not what was recorded");
            Err(Failure::new(Cause::State, message).causes(damaged))
        }
    }
}
