//! What is wrong with a journal, and where.

use std::fmt;

use convoke_core::RunId;

/// The first thing in a journal that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The line, from 1; the first is the header.
    pub line: u64,
    /// The last event before it: everything up to there is intact.
    pub seq_before: u64,
    /// What is wrong.
    pub reason: Reason,
    /// The number of events after it whose lines are as they were written.
    pub later: u64,
}

impl Damage {
    /// Describes a line after this many events.
    pub(crate) const fn after(seq_before: u64, reason: Reason) -> Self {
        Self { line: seq_before + 2, seq_before, reason, later: 0 }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {} {}", self.line, self.reason)
    }
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// It is not JSON.
    #[error("is not JSON")]
    NotJson,
    /// Its checksum does not fit.
    #[error("was altered: its checksum does not fit")]
    Altered,
    /// It does not carry the hash of the line before it.
    #[error("does not follow the line before it: a line is missing, or was put in")]
    BrokenChain,
    /// It has another number than it should.
    #[error("holds event {found} where event {expected} has to come")]
    Gap {
        /// The number that had to come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// It is not the one whose hash is kept apart from the journal.
    #[error(
        "is not the line that was recorded there: it, or one before it, was changed, and the hashes \
         after it were made anew"
    )]
    OtherThanHead,
    /// It was recorded and is not there.
    #[error("is missing: {}, and the journal ends before {}", recorded(*head), last(*head))]
    CutShort {
        /// The number of the last event that is known to have been recorded.
        head: u64,
    },
    /// It belongs to another run.
    #[error("belongs to run `{found}`")]
    OtherRun {
        /// The run it belongs to.
        found: RunId,
    },
    /// It is as it was written, but this program does not understand it.
    #[error("cannot be understood ({problem}); was it written by a newer program?")]
    Unknown {
        /// Where understanding ended.
        problem: String,
    },
    /// A text it points to is not there.
    #[error("has its value at `{pointer}` in a blob that is missing: {hash}")]
    MissingBlob {
        /// Where in the event.
        pointer: String,
        /// The name of the blob.
        hash: String,
    },
    /// A text it points to is not what it was.
    #[error("has its value at `{pointer}` in a blob that was altered: {hash}")]
    AlteredBlob {
        /// Where in the event.
        pointer: String,
        /// The name of the blob.
        hash: String,
    },
    /// A text it points to is there and cannot be read.
    #[error("has its value at `{pointer}` in a blob that cannot be read: {hash} ({problem})")]
    UnreadableBlob {
        /// Where in the event.
        pointer: String,
        /// The name of the blob.
        hash: String,
        /// What the system said.
        problem: String,
    },
}

fn recorded(events: u64) -> String {
    match events {
        0 => "it was recorded".to_owned(),
        1 => "1 event was recorded".to_owned(),
        several => format!("{several} events were recorded"),
    }
}

const fn last(events: u64) -> &'static str {
    if events < 2 { "it" } else { "the last of them" }
}
