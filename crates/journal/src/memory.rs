//! A journal that forgets everything when it is dropped: for tests and for runs nobody wants to keep.

use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::{Event, RunId};

use crate::error::JournalError;
use crate::journal::Journal;
use crate::sync::Synced;
use crate::tape;

/// Keeps events in memory, under the same rules as on disk.
#[derive(Debug)]
pub struct MemoryJournal {
    run: RunId,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    events: Vec<Event>,
    closed: Option<Arc<JournalError>>,
}

impl MemoryJournal {
    /// Makes an empty journal of a run.
    pub fn new(run: impl Into<RunId>) -> Self {
        Self { run: run.into(), kept: Mutex::default() }
    }

    /// Returns the events so far.
    pub fn events(&self) -> Vec<Event> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).events.clone()
    }
}

impl Journal for MemoryJournal {
    fn append(&self, event: &Event) -> Result<(), JournalError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = &kept.closed {
            return Err(JournalError::Closed(Arc::clone(first)));
        }
        match tape::check(&self.run, kept.events.len() as u64, event) {
            Ok(_) => kept.events.push(event.clone()),
            Err(error) => {
                let first = kept.closed.insert(Arc::new(error));
                return Err(JournalError::Closed(Arc::clone(first)));
            }
        }
        Ok(())
    }

    fn request_sync(&self) {}

    fn sync(&self) -> Synced {
        Synced::already()
    }
}
