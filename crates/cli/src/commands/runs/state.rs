//! Whether a run runs and how it ended, in a word: the same in lists, in what is shown, and for `--status`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use convoke::journal::{Condition, Summary};
use convoke_core::{Outcome, Status};

use crate::output::{Stream, Style};
use crate::view::ending;
use crate::view::look::{Look, Sign};

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A process works on it.
    Running,
    /// A process works on it and waits for a person's answer.
    Waiting,
    /// It was lost before anything was recorded.
    NeverStarted,
    /// Somebody stopped it or it was lost, and nobody works on it: it can go on.
    Interrupted,
    /// It ended.
    Ended(Status),
    /// Its journal cannot be read to the end.
    Damaged,
}

/// All of them, with their words.
const WORDS: [(&str, State); 11] = [
    ("running", State::Running),
    ("waiting", State::Waiting),
    ("never_started", State::NeverStarted),
    ("interrupted", State::Interrupted),
    ("completed", State::Ended(Status::Completed)),
    ("failed", State::Ended(Status::Failed)),
    ("denied", State::Ended(Status::Denied)),
    ("limited", State::Ended(Status::Limited)),
    ("stuck", State::Ended(Status::Stuck)),
    ("parked", State::Ended(Status::Parked)),
    ("damaged", State::Damaged),
];

/// What the report of a run that somebody stopped calls it.
const STOPPED: &str = "cancelled";

impl State {
    /// The state of a run in a list.
    pub(super) const fn of(summary: &Summary) -> Self {
        match (&summary.problem, summary.condition) {
            (Some(_), _) => Self::Damaged,
            (None, Condition::Running) => Self::Running,
            (None, Condition::Waiting) => Self::Waiting,
            (None, Condition::NeverStarted) => Self::NeverStarted,
            (None, Condition::Interrupted) => Self::Interrupted,
            (None, Condition::Ended { status, .. }) => Self::ended(status),
        }
    }

    /// The state of a run that ended. One that somebody stopped can go on like one that was lost: that it could
    /// say so makes no difference.
    pub(super) const fn ended(status: Status) -> Self {
        match status {
            Status::Cancelled => Self::Interrupted,
            status => Self::Ended(status),
        }
    }

    /// Returns its word.
    pub(super) fn word(self) -> &'static str {
        WORDS.iter().find(|(_, state)| *state == self).map_or("unknown", |(word, _)| word)
    }

    /// Returns its sign.
    pub(super) const fn sign(self) -> Sign {
        match self {
            Self::Running => Sign::Begins,
            Self::Ended(Status::Completed) => Sign::Ok,
            Self::Ended(Status::Failed | Status::Stuck) => Sign::Failed,
            Self::Ended(Status::Denied) => Sign::Denied,
            Self::Waiting | Self::Ended(Status::Parked) => Sign::Asks,
            Self::NeverStarted
            | Self::Interrupted
            | Self::Ended(Status::Limited | Status::Cancelled) => Sign::Stopped,
            Self::Damaged => Sign::Warning,
        }
    }

    /// Returns its colour. The sign and the word say the same.
    pub(super) const fn style(self) -> Style {
        match self {
            Self::Running => Style::Place,
            Self::Ended(Status::Completed) => Style::Good,
            Self::Damaged | Self::Ended(Status::Failed | Status::Stuck | Status::Denied) => {
                Style::Bad
            }
            Self::Waiting
            | Self::NeverStarted
            | Self::Interrupted
            | Self::Ended(Status::Limited | Status::Cancelled | Status::Parked) => Style::Warn,
        }
    }

    /// Tells whether a process works on the run.
    pub(super) const fn is_worked_on(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }

    /// Returns sign and word, as a stream shows them, with the number of questions where they matter.
    pub(super) fn shown(self, questions: usize, stream: &Stream) -> String {
        let sign = Look::of(stream).sign(self.sign());
        match (self, questions) {
            (Self::Waiting | Self::Interrupted | Self::Ended(Status::Parked), 1..) => {
                format!("{sign} {} ({questions})", self.word())
            }
            _ => format!("{sign} {}", self.word().replace('_', " ")),
        }
    }
}

/// Returns how a run ended in a few words: `completed`, `limited (max_turns), recovered`.
pub(super) fn ended(outcome: &Outcome) -> String {
    let status = State::ended(outcome.status).word();
    let cause = match ending::word(outcome.cause) {
        cause if outcome.cause.status() == Status::Completed || cause == "error" => String::new(),
        cause if cause == status => String::new(),
        cause => format!(" ({cause})"),
    };
    let recovered = if outcome.recovered { ", recovered" } else { "" };
    format!("{status}{cause}{recovered}")
}

/// Reads a state. The report of a run that was stopped says `cancelled`, so that is understood as well.
pub(super) fn parser() -> impl TypedValueParser<Value = State> {
    let values = WORDS.map(|(word, state)| match state {
        State::Interrupted => PossibleValue::new(word).alias(STOPPED),
        _ => PossibleValue::new(word),
    });
    PossibleValuesParser::new(values).map(|said| {
        let known = WORDS.iter().find(|(word, _)| *word == said);
        known.map_or(State::Interrupted, |(_, state)| *state)
    })
}

#[cfg(test)]
mod tests {
    use convoke_core::Cause;

    use super::*;

    #[test]
    fn every_status_has_the_word_it_has_in_json() {
        for (word, state) in WORDS {
            assert_eq!(state.word(), word);
            if let State::Ended(status) = state {
                assert_eq!(serde_json::to_value(status).unwrap(), word);
            }
        }
    }

    #[test]
    fn an_ending_is_told_with_its_cause_where_that_says_more() {
        let limited = Outcome { recovered: true, ..Cause::MaxTurns.into() };
        assert_eq!(ended(&limited), "limited (max_turns), recovered");
        assert_eq!(ended(&Cause::Goal.into()), "completed");
        assert_eq!(ended(&Cause::Error.into()), "failed");
        assert_eq!(ended(&Cause::Denied.into()), "denied");
        assert_eq!(ended(&Cause::Interrupted.into()), "interrupted");
        assert_eq!(ended(&Cause::Terminated.into()), "interrupted (terminated)");
    }
}
