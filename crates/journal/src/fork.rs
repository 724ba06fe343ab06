//! Copies a run up to one of its events, to go on from there in another way.

use convoke_core::{Event, RunId, Timestamp};

use crate::blob::Blobs;
use crate::error::{JournalError, Tried};
use crate::files;
use crate::header::{Forked, Header};
use crate::journal::Journal;
use crate::store::{Opened, Store};

impl Store {
    /// Copies the events of a run up to and including `at` into a new run, and opens that.
    ///
    /// The run that is copied is only read, so it may be at work or damaged after `at`.
    pub fn fork(
        &self,
        run: &RunId,
        at: u64,
        new: &RunId,
        now: Timestamp,
    ) -> Result<Opened, JournalError> {
        let directory = self.directory(new)?;
        if directory.exists() {
            return Err(JournalError::Taken { run: new.clone(), path: directory });
        }
        let events = self.events_upto(run, at)?;
        // Until it is whole, nobody sees it.
        let hidden = self.runs().join(format!(".forked-{new}-{}", std::process::id()));
        let header = Header::new(new, now, Some(Forked { run: run.clone(), at }));
        let blobs = Blobs::of(&hidden).sharing(&Blobs::of(&self.directory(run)?));
        let copied = self.create_in(&hidden, &header, blobs, now).and_then(|journal| {
            events.into_iter().try_for_each(|event| journal.append(&renamed(event, run, new)))
        });
        let placed = copied.and_then(|()| {
            files::rename(&hidden, &directory).tried("make the directory", &directory)
        });
        if let Err(error) = placed {
            // The first error is the one to tell; this is tidying up.
            drop(files::remove_directory(&hidden));
            return Err(error);
        }
        self.open(new, now)
    }

    fn events_upto(&self, run: &RunId, at: u64) -> Result<Vec<Event>, JournalError> {
        let recorded = self.read(run)?;
        let mut events = recorded.events;
        let last = events.len() as u64;
        if let Some(damage) = recorded.damage.filter(|damage| at > damage.seq_before) {
            return Err(JournalError::Damaged { run: run.clone(), damage });
        }
        if at == 0 || at > last {
            return Err(JournalError::NoSuchEvent { run: run.clone(), at, last });
        }
        events.truncate(usize::try_from(at).unwrap_or(usize::MAX));
        Ok(events)
    }
}

fn renamed(mut event: Event, from: &RunId, to: &RunId) -> Event {
    if event.run == *from {
        event.run = to.clone();
    }
    if event.parent.as_ref() == Some(from) {
        event.parent = Some(to.clone());
    }
    event
}
