//! What keeps events: the trait, and the one that keeps them in files.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use convoke_core::{Event, RunId};

use crate::error::JournalError;
use crate::files;
use crate::owner;
use crate::sync::{Durability, Synced, Syncer};
use crate::tape::Tape;

/// Keeps the durable events of a tree of runs, in order.
pub trait Journal: Send + Sync + Debug {
    /// Accepts the next event. When this returns, the event will survive the process.
    ///
    /// After an error the journal is closed: it takes nothing more, and repeats that first error.
    fn append(&self, event: &Event) -> Result<(), JournalError>;

    /// Begins to bring all that was accepted to the disk. Returns at once.
    fn request_sync(&self);

    /// Brings all that was accepted to the disk; the future ends when it is there. It begins at once,
    /// whether the future is awaited or not.
    fn sync(&self) -> Synced;
}

/// The journal of one run, in files. As long as it lives, no other process can write there.
#[derive(Debug)]
pub struct RunJournal {
    tape: Arc<Tape>,
    syncer: Arc<Syncer>,
    durability: Durability,
}

impl RunJournal {
    pub(crate) const fn new(tape: Arc<Tape>, syncer: Arc<Syncer>, durability: Durability) -> Self {
        Self { tape, syncer, durability }
    }

    /// Returns whose journal it is.
    pub fn run(&self) -> &RunId {
        self.tape.run()
    }

    /// Returns the directory of the run.
    pub fn directory(&self) -> &Path {
        self.tape.directory()
    }

    /// Returns the number of the last event, 0 if there is none.
    pub fn seq(&self) -> u64 {
        self.tape.seq()
    }
}

impl Journal for RunJournal {
    fn append(&self, event: &Event) -> Result<(), JournalError> {
        self.tape.append(event)?;
        if self.durability == Durability::Strict {
            return self.sync().wait();
        }
        Ok(())
    }

    fn request_sync(&self) {
        if self.durability != Durability::Relaxed {
            self.syncer.request(&self.tape);
        }
    }

    fn sync(&self) -> Synced {
        if self.durability == Durability::Relaxed {
            return Synced::already();
        }
        // In this order: what others write after it was asked for may not be brought to the disk by it.
        let synced = Synced::of(&self.tape);
        self.syncer.request(&self.tape);
        synced
    }
}

impl Drop for RunJournal {
    fn drop(&mut self) {
        if self.durability == Durability::Relaxed {
            self.tape.keep_head();
        }
        // Whoever finds the file after a failure takes it for that of a dead process, which is right.
        drop(files::remove(&owner::path_in(self.tape.directory())));
        // A sync that is still under way holds the file open, but no longer for us.
        drop(self.tape.file.unlock());
    }
}
