//! Runs whose events are kept in journals on disk, and runs that are taken up from there.

use std::sync::Arc;

use convoke_core::event::VERSION;
use convoke_core::{AgentPath, Event, EventBody, Position, RunId, causes};
use convoke_journal::{Damage, Journal, JournalError, Opened, Owner, Repair, RunJournal, Store};
use convoke_tool::{Clock, EventSink, RecordError, Synced};

use crate::keeper::{Keeper, Place};
use crate::resume::Paused;

/// Keeps the events of a run, and of all runs below it, in a journal.
///
/// A turn that ends is brought to the disk without anybody waiting for it. What has to be there before
/// something else begins is waited for by whoever begins it.
#[derive(Debug)]
pub struct Journaled(Arc<dyn Journal>);

impl Journaled {
    /// Keeps events in this journal.
    pub fn new(journal: impl Journal + 'static) -> Self {
        Self(Arc::new(journal))
    }
}

impl EventSink for Journaled {
    fn append(&self, event: &Arc<Event>) -> Result<(), RecordError> {
        self.0.append(event).map_err(|error| unkept(&error))?;
        if let EventBody::TurnEnded { .. } = event.body {
            self.0.request_sync();
        }
        Ok(())
    }

    fn stream(&self, _: &Arc<Event>) {}

    fn sync(&self) -> Synced {
        let synced = self.0.sync();
        Box::pin(async move { synced.await.map_err(|error| unkept(&error)) })
    }
}

fn unkept(error: &JournalError) -> RecordError {
    let said: Vec<String> = causes::chain(error).map(ToString::to_string).collect();
    RecordError::new(said.join(": "))
}

/// The directory beside the journal that holds the contents which file tools replaced. It goes with the run.
const REPLACED: &str = "replaced";

/// Gives every run a journal in a state directory.
#[derive(Clone, Debug)]
pub struct Journals {
    store: Store,
    clock: Arc<dyn Clock>,
}

/// A run that was taken up from its journal.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reopened {
    /// The run, ready to go on.
    pub paused: Paused,
    /// All that happened in it.
    pub events: Vec<Event>,
    /// What was cut off at the end of the journal.
    pub repaired: Option<Repair>,
    /// The process that worked on it before and died.
    pub died: Option<Owner>,
    /// The texts of its events that are lost; a mark stands for each.
    pub lost: Vec<Damage>,
}

impl Journals {
    /// Keeps runs in this store, with times from this clock.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Returns the store.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Takes up a run. Nobody else can work on it until it is dropped.
    pub fn reopen(&self, run: &RunId) -> Result<Reopened, JournalError> {
        self.store.open(run, self.clock.now()).map(|opened| self.reopened(run, opened))
    }

    /// Makes a new run of the first events of another, up to and including number `at`.
    pub fn fork(&self, run: &RunId, at: u64) -> Result<Reopened, JournalError> {
        let now = self.clock.now();
        let new = crate::executor::new_run_id(now);
        let mut opened = self.store.fork(run, at, &new, now)?;
        let forked = Event {
            v: VERSION,
            position: Position::Durable { seq: at + 1 },
            ts: now,
            run: new.clone(),
            parent: None,
            agent: AgentPath::default(),
            call: None,
            secrets: std::collections::BTreeSet::new(),
            body: EventBody::RunForked { from: run.clone(), at },
        };
        opened.journal.append(&forked)?;
        opened.events.push(forked);
        Ok(self.reopened(&new, opened))
    }

    fn reopened(&self, run: &RunId, opened: Opened) -> Reopened {
        let Opened { journal, events, repaired, died, lost } = opened;
        let paused = Paused::rebuild(run, &events, self.place(run, journal));
        Reopened { paused, events, repaired, died, lost }
    }

    fn place(&self, run: &RunId, journal: RunJournal) -> Place {
        let mut place = Place::new(Arc::new(Journaled::new(journal)));
        if let Ok(directory) = self.store.directory(run) {
            place = place.replaced(directory.join(REPLACED));
        }
        match self.store.inbox(run) {
            Ok(inbox) => place.inbox(inbox),
            // It has no name that could be a directory, so nobody can leave anything there.
            Err(_) => place,
        }
    }
}

impl Keeper for Journals {
    fn keep(&self, run: &RunId) -> Result<Place, RecordError> {
        let journal = self.store.create(run, self.clock.now()).map_err(|error| unkept(&error))?;
        Ok(self.place(run, journal))
    }
}
