//! An open journal file: takes lines at its end, and knows which of them have reached the disk.
//!
//! One lock guards both, and it is never held while the disk is waited for.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use convoke_core::{Event, Position, RunId};

use crate::blob::{Blobs, Fresh, LONG_LINE};
use crate::error::{JournalError, Tried};
use crate::hash::Hash;
use crate::head::Head;
use crate::line::{self, MAX_DEPTH, Moved};

/// Memory that a long event took is given back.
const KEPT_CAPACITY: usize = 8 * 1024;

/// An open journal file.
#[derive(Debug)]
pub(crate) struct Tape {
    run: RunId,
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    /// Where its head is kept.
    head: PathBuf,
    blobs: Blobs,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The line that is being made; kept for its memory.
    line: Vec<u8>,
    end: End,
    /// How many lines were accepted, and how many of them are on the disk.
    accepted: u64,
    synced: u64,
    /// Whether a sync was asked for that has not begun.
    queued: bool,
    /// What was written beside it since the last sync.
    unsynced: Fresh,
    waiting: Vec<Waker>,
    /// The first error; nothing is accepted after it.
    closed: Option<Arc<JournalError>>,
}

/// Where a journal ends.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// The number of the last event.
    pub(crate) seq: u64,
    /// The hash of the last line.
    pub(crate) hash: Hash,
    /// The length of the file.
    pub(crate) length: u64,
}

/// What one sync has to bring to the disk, beside the journal itself.
#[derive(Debug)]
pub(crate) struct Work {
    /// How many lines it covers.
    pub(crate) upto: u64,
    /// Where the journal ends when they are there.
    end: End,
    pub(crate) fresh: Fresh,
}

impl Tape {
    /// Takes an open file that ends like this, and what beside it may not be on the disk yet.
    pub(crate) fn new(
        run: RunId,
        file: File,
        path: PathBuf,
        head: PathBuf,
        blobs: Blobs,
        end: End,
        unsynced: Fresh,
    ) -> Self {
        let state = State {
            line: Vec::new(),
            end,
            // What the file holds already may come from a process that died before it was synced.
            accepted: 1,
            synced: 0,
            queued: false,
            unsynced,
            waiting: Vec::new(),
            closed: None,
        };
        Self { run, file, path, head, blobs, state: Mutex::new(state) }
    }

    pub(crate) const fn run(&self) -> &RunId {
        &self.run
    }

    /// Returns the number of the last event.
    pub(crate) fn seq(&self) -> u64 {
        self.lock().end.seq
    }

    /// Writes an event at the end.
    pub(crate) fn append(&self, event: &Event) -> Result<(), JournalError> {
        let mut state = self.lock();
        if let Some(first) = &state.closed {
            return Err(JournalError::Closed(Arc::clone(first)));
        }
        self.write(&mut state, event).map_err(|error| state.close(error))
    }

    fn write(&self, state: &mut State, event: &Event) -> Result<(), JournalError> {
        let seq = check(&self.run, state.end.seq, event)?;
        let State { line, end, .. } = state;
        let mut hash = line::write(line, &end.hash, &Moved::new(), event)?;
        if line::depth(line) > MAX_DEPTH {
            return Err(JournalError::TooDeep { seq, limit: MAX_DEPTH });
        }
        if line.len() > LONG_LINE {
            let mut fresh = Fresh::default();
            let (short, moved) = self.blobs.move_out(event, &mut fresh)?;
            hash = line::write(line, &end.hash, &moved, &short)?;
            state.unsynced.add(fresh);
        }
        self.put_down(&state.line, state.end.length)?;
        state.end = End { seq, hash, length: state.end.length + state.line.len() as u64 };
        state.accepted += 1;
        if state.line.capacity() > LONG_LINE {
            state.line = Vec::with_capacity(KEPT_CAPACITY);
        }
        Ok(())
    }

    /// Writes a line with one call. If not all of it could be written, none of it stays.
    fn put_down(&self, line: &[u8], length: u64) -> Result<(), JournalError> {
        let written = (&self.file).write_all(line);
        if written.is_err() {
            // If this fails too, the torn line is cut off when the journal is opened again.
            drop(self.file.set_len(length));
        }
        written.tried("write", &self.path)?;
        // What is written to a file without a name is lost.
        let removed = rustix::fs::fstat(&self.file).is_ok_and(|status| status.st_nlink == 0);
        if removed { Err(JournalError::Removed { run: self.run.clone() }) } else { Ok(()) }
    }

    /// Asks for a sync of all that was accepted; tells whether it has to be queued for that.
    pub(crate) fn ask_for_sync(&self) -> bool {
        let mut state = self.lock();
        let needed = state.synced < state.accepted && !state.queued && state.closed.is_none();
        state.queued |= needed;
        needed
    }

    /// Begins a sync of all that was accepted until now. What comes later needs another one.
    pub(crate) fn begin_sync(&self) -> Work {
        let mut state = self.lock();
        state.queued = false;
        let fresh = std::mem::take(&mut state.unsynced);
        Work { upto: state.accepted, end: state.end.clone(), fresh }
    }

    /// Ends a sync. After one that failed nobody knows what is on the disk: the journal is closed.
    pub(crate) fn end_sync(&self, work: &Work, result: Result<(), JournalError>) {
        if result.is_ok() {
            self.write_head(&work.end);
        }
        let mut state = self.lock();
        match result {
            Ok(()) => state.synced = state.synced.max(work.upto),
            Err(error) => drop(state.close(error)),
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Keeps where the journal ends now, though nobody knows what of it is on the disk.
    pub(crate) fn keep_head(&self) {
        let end = self.lock().end.clone();
        self.write_head(&end);
    }

    /// The journal does not depend on its head: where it cannot be written, whoever verifies the journal
    /// is told that nothing vouches for its last lines.
    fn write_head(&self, end: &End) {
        let removed = rustix::fs::fstat(&self.file).is_ok_and(|status| status.st_nlink == 0);
        if !removed {
            drop(Head::write(&self.head, end));
        }
    }

    /// Returns how many lines were accepted.
    pub(crate) fn accepted(&self) -> u64 {
        self.lock().accepted
    }

    /// Says whether this many lines are on the disk, and wakes somebody when that may have changed.
    pub(crate) fn poll_synced(&self, goal: u64, waker: &Waker) -> Poll<Result<(), JournalError>> {
        let mut state = self.lock();
        if state.synced >= goal {
            return Poll::Ready(Ok(()));
        }
        if let Some(first) = &state.closed {
            return Poll::Ready(Err(JournalError::Closed(Arc::clone(first))));
        }
        if !state.waiting.iter().any(|known| known.will_wake(waker)) {
            state.waiting.push(waker.clone());
        }
        Poll::Pending
    }

    /// Returns the directory of the run.
    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Accepts nothing any more, and returns the first error.
    fn close(&mut self, error: JournalError) -> JournalError {
        JournalError::Closed(Arc::clone(self.closed.get_or_insert_with(|| Arc::new(error))))
    }
}

/// Checks that an event is the next one of this run's tree, and returns its number.
pub(crate) fn check(run: &RunId, last: u64, event: &Event) -> Result<u64, JournalError> {
    let seq = match event.position {
        Position::Durable { seq } => seq,
        Position::Ephemeral { after, .. } => return Err(JournalError::Ephemeral { after }),
    };
    if seq != last + 1 {
        return Err(JournalError::OutOfOrder { expected: last + 1, found: seq });
    }
    if event.parent.is_none() && event.run != *run {
        return Err(JournalError::OtherRun { run: run.clone(), found: event.run.clone() });
    }
    Ok(seq)
}
