//! Which run is meant.

use convoke::journal::{FindError, JournalError, Store};
use convoke_core::{Cause, RunId};

use crate::failure::Failure;

/// What comes before the words: a run, or `--last`.
const LAST_HELP: &str = "`--last` means the newest run; then no ID is given";

/// Says which run is meant by these words, and returns the words that are left.
pub(super) fn run<'w>(
    store: &Store,
    words: &'w [String],
    last: bool,
) -> Result<(RunId, &'w [String]), Failure> {
    if last {
        let newest = store.last().map_err(|error| failure(&error))?;
        let newest = newest.ok_or_else(|| {
            let place = store.root().display();
            Failure::usage(format!("there are no runs in `{place}`"))
        })?;
        return Ok((newest, words));
    }
    let Some((id, rest)) = words.split_first() else {
        return Err(Failure::usage("the run is not named")
            .hint("`convoke runs list` shows all runs")
            .hint(LAST_HELP));
    };
    Ok((find(store, id)?, rest))
}

/// Finds a run by its id, or by any part of it that no other has.
pub(super) fn find(store: &Store, id: &str) -> Result<RunId, Failure> {
    store.find(id).map_err(|error| match error {
        FindError::Journal(error) => failure(&error),
        error => Failure::usage(error.to_string()).hint("`convoke runs list` shows all runs"),
    })
}

/// Says what is wrong with a journal.
pub(super) fn failure(error: &JournalError) -> Failure {
    let cause = match error {
        JournalError::NotFound { .. }
        | JournalError::InvalidId { .. }
        | JournalError::NoSuchEvent { .. } => Cause::Usage,
        _ => Cause::State,
    };
    let failure = Failure::new(cause, error.to_string());
    match std::error::Error::source(error) {
        Some(source) => failure.because(source),
        None => failure,
    }
}
