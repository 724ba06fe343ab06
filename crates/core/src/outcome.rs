//! How a run, a call or a command ends. One table says what each cause means everywhere.
//!
//! A failure never looks like a success: the cause of an ending stays with it, also where a last
//! attempt recovered an answer, and every cause has one exit code, one word and one termination mode.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ErrorKind;

/// The process exit codes of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Done.
    Done = 0,
    /// Tried and failed.
    Failed = 1,
    /// Called wrongly.
    Usage = 2,
    /// Not allowed.
    Denied = 3,
    /// A budget or limit was reached.
    Limit = 4,
    /// Stopped making progress.
    Stuck = 5,
    /// No model answers.
    ModelUnavailable = 6,
    /// The configuration is wrong.
    Configuration = 7,
    /// Waits for an approval; can be resumed.
    Parked = 8,
    /// The state directory or its lock.
    State = 9,
    /// Ctrl-C.
    Interrupted = 130,
    /// SIGTERM or SIGHUP; can be resumed.
    Terminated = 143,
}

/// The outcome of a run in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The task was done.
    Completed,
    /// It went wrong.
    Failed,
    /// It was not allowed.
    Denied,
    /// A limit ended it.
    Limited,
    /// It stopped making progress.
    Stuck,
    /// It waits for somebody.
    Parked,
    /// Somebody stopped it.
    Cancelled,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// The goal was reached.
    Goal,
    /// Something failed.
    Error,
    /// The command line was wrong.
    Usage,
    /// Policy or a person said no.
    Denied,
    /// All turns were used.
    MaxTurns,
    /// All time was used.
    Timeout,
    /// All tokens were used.
    MaxTokens,
    /// All money was used.
    MaxCost,
    /// All tool calls were used.
    MaxToolCalls,
    /// The conversation no longer fits the model.
    ContextWindow,
    /// The same thing happened again and again.
    Loop,
    /// The model stopped without completing its task.
    NoCompletion,
    /// No model answers.
    ModelUnavailable,
    /// The configuration is wrong.
    Configuration,
    /// An approval is awaited.
    AwaitsApproval,
    /// The state directory cannot be used.
    State,
    /// The user interrupted it.
    Interrupted,
    /// The system ended it.
    Terminated,
}

/// The six termination modes of the mission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TerminateMode {
    /// Something went wrong.
    Error,
    /// Time was up.
    Timeout,
    /// The goal was reached.
    Goal,
    /// Turns were used up.
    MaxTurns,
    /// Somebody stopped it.
    Aborted,
    /// It stopped without completing.
    ErrorNoCompleteTaskCall,
}

/// Everything that follows from a cause: its status, exit code and termination mode.
const ENDINGS: &[(Cause, Status, ExitCode, TerminateMode)] = {
    use {Cause as C, ExitCode as X, Status as S, TerminateMode as M};
    &[
        (C::Goal, S::Completed, X::Done, M::Goal),
        (C::Error, S::Failed, X::Failed, M::Error),
        (C::Usage, S::Failed, X::Usage, M::Error),
        (C::Denied, S::Denied, X::Denied, M::Error),
        (C::MaxTurns, S::Limited, X::Limit, M::MaxTurns),
        (C::Timeout, S::Limited, X::Limit, M::Timeout),
        (C::MaxTokens, S::Limited, X::Limit, M::Error),
        (C::MaxCost, S::Limited, X::Limit, M::Error),
        (C::MaxToolCalls, S::Limited, X::Limit, M::Error),
        (C::ContextWindow, S::Limited, X::Limit, M::Error),
        (C::Loop, S::Stuck, X::Stuck, M::ErrorNoCompleteTaskCall),
        (C::NoCompletion, S::Stuck, X::Stuck, M::ErrorNoCompleteTaskCall),
        (C::ModelUnavailable, S::Failed, X::ModelUnavailable, M::Error),
        (C::Configuration, S::Failed, X::Configuration, M::Error),
        (C::AwaitsApproval, S::Parked, X::Parked, M::Aborted),
        (C::State, S::Failed, X::State, M::Error),
        (C::Interrupted, S::Cancelled, X::Interrupted, M::Aborted),
        (C::Terminated, S::Cancelled, X::Terminated, M::Aborted),
    ]
};

impl Cause {
    fn ending(self) -> (Status, ExitCode, TerminateMode) {
        let row = ENDINGS.iter().find(|(cause, ..)| *cause == self);
        row.map_or((Status::Failed, ExitCode::Failed, TerminateMode::Error), |row| {
            (row.1, row.2, row.3)
        })
    }

    /// Returns the status a run has that ended for this cause.
    pub fn status(self) -> Status {
        self.ending().0
    }

    /// Returns the exit code of a command that ended for this cause.
    pub fn exit_code(self) -> ExitCode {
        self.ending().1
    }

    /// Returns the mission's termination mode.
    pub fn terminate_mode(self) -> TerminateMode {
        self.ending().2
    }
}

impl From<ErrorKind> for Cause {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Permission => Self::Denied,
            ErrorKind::Timeout => Self::Timeout,
            ErrorKind::Cancelled => Self::Interrupted,
            ErrorKind::Validation => Self::Usage,
            ErrorKind::NotFound
            | ErrorKind::Failed
            | ErrorKind::Unavailable
            | ErrorKind::Interrupted => Self::Error,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The ending in one word.
    pub status: Status,
    /// Why it ended; stays what it was, also when an answer was recovered.
    pub cause: Cause,
    /// Whether a last attempt, beyond the cause, still gave an answer.
    #[serde(default)]
    pub recovered: bool,
    /// What there was when it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Value>,
    /// What happened and what to do, in words, where something went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Outcome {
    /// Says what happened.
    #[must_use]
    pub fn because(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Tells whether an agent that ended like this may go on together with its caller: it waits for a person, was
    /// stopped, or found no model.
    pub fn is_for_now(&self) -> bool {
        matches!(self.status, Status::Parked | Status::Cancelled)
            || self.cause == Cause::ModelUnavailable
    }
}

impl From<Cause> for Outcome {
    fn from(cause: Cause) -> Self {
        Self { status: cause.status(), cause, recovered: false, partial: None, message: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_goal_is_a_success() {
        for (cause, status, code, mode) in ENDINGS {
            let good =
                [*status == Status::Completed, *code as u8 == 0, *mode == TerminateMode::Goal];
            assert!(good.iter().all(|yes| *yes == (*cause == Cause::Goal)), "{cause:?}");
        }
    }

    #[test]
    fn every_cause_has_its_own_row() {
        let mut causes: Vec<String> = ENDINGS.iter().map(|row| format!("{:?}", row.0)).collect();
        let rows = causes.len();
        causes.sort();
        causes.dedup();
        assert_eq!(causes.len(), rows);
        assert_eq!(Cause::State.exit_code() as u8, 9);
        assert_eq!(Cause::MaxTurns.terminate_mode(), TerminateMode::MaxTurns);
    }

    #[test]
    fn a_denied_call_exits_like_a_denied_run() {
        assert_eq!(Cause::from(ErrorKind::Permission).exit_code(), ExitCode::Denied);
        assert_eq!(Cause::from(ErrorKind::Timeout).exit_code(), ExitCode::Limit);
        assert_eq!(Cause::from(ErrorKind::Validation).exit_code(), ExitCode::Usage);
    }
}
