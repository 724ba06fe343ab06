//! The first line of a journal: what it is, whose it is, who made it.

use convoke_core::{RunId, Timestamp};
use serde::{Deserialize, Serialize};

/// The format of journals that this program writes, and the newest it reads.
pub const FORMAT: u32 = 1;

const PROGRAM: &str = concat!("convoke ", env!("CARGO_PKG_VERSION"));

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Header {
    /// The format of the file.
    pub(crate) journal: u64,
    /// The root run.
    pub(crate) run: RunId,
    /// When the run was made.
    pub(crate) created: Timestamp,
    /// The program that made it.
    pub(crate) program: String,
    /// Where the run was copied from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forked_from: Option<Forked>,
}

/// Where a run was copied from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// The run.
    pub run: RunId,
    /// The last event that was copied.
    pub at: u64,
}

impl Header {
    pub(crate) fn new(run: &RunId, created: Timestamp, forked_from: Option<Forked>) -> Self {
        let program = PROGRAM.to_owned();
        Self { journal: u64::from(FORMAT), run: run.clone(), created, program, forked_from }
    }
}

/// What every format says about itself, whatever else it may hold.
#[derive(Debug, Deserialize)]
pub(crate) struct Format {
    pub(crate) journal: u64,
}
