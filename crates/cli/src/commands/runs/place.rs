//! Where a run was started, and what it is, without reading all of it.
//!
//! The first event says so, and it is the second line of a journal; the first is the header.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use convoke::Origin;
use convoke::journal::Store;
use convoke_core::RunId;
use serde::Deserialize;

use crate::files;

/// How much is read of a journal. Longer texts are not in its lines.
const MOST: u64 = 4 * 1024 * 1024;

#[derive(Deserialize)]
struct First {
    data: Started,
}

#[derive(Deserialize)]
struct Started {
    origin: Origin,
}

/// Returns the directory a run was started in, where that was recorded and can be read.
pub(super) fn of(store: &Store, run: &RunId) -> Option<PathBuf> {
    origin(store, run).map(|origin| origin.working_directory)
}

/// Tells whether a run is what clients of a server called.
pub(super) fn is_served(store: &Store, run: &RunId) -> bool {
    origin(store, run).is_some_and(|origin| origin.served)
}

fn origin(store: &Store, run: &RunId) -> Option<Origin> {
    let journal = store.directory(run).ok()?.join("journal.jsonl");
    let mut lines = BufReader::new(files::open_regular(&journal).ok()?.take(MOST)).split(b'\n');
    let first = lines.nth(1)?.ok()?;
    let First { data } = serde_json::from_slice(&first).ok()?;
    Some(data.origin)
}
