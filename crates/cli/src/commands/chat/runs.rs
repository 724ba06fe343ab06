//! Conversations that are kept: taking one up again, parting from one, writing one down.
//!
//! Nothing is kept yet, and each of these says so.

use std::path::PathBuf;

use convoke::agent::Paused;

use crate::failure::Failure;

/// Finds an earlier conversation, or the last one.
pub(super) fn resume(_id: Option<&str>) -> Result<Paused, Failure> {
    Err(not_kept())
}

/// Begins a conversation that is like this one up to an event, or to its end.
pub(super) fn fork(_from: &Paused, _seq: Option<u64>) -> Result<Paused, Failure> {
    Err(not_kept())
}

/// Writes a conversation to a file, or to one that is named after it. Returns its path.
pub(super) fn export(_from: &Paused, _file: Option<&str>) -> Result<PathBuf, Failure> {
    Err(not_kept())
}

fn not_kept() -> Failure {
    Failure::failed("conversations are not kept")
        .hint("runs are kept once a state directory is configured")
}
