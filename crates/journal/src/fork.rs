//! Copies a run up to one of its events, to go on from there in another way.
//!
//! The ids of agents below a run begin with its id. In the copy they begin with the new one, so that the two
//! never share an agent, nor its files.

use std::collections::{BTreeMap, BTreeSet};

use convoke_core::{Event, EventBody, Outcome, Run, RunId, Timestamp};

use crate::blob::Blobs;
use crate::error::{JournalError, Tried};
use crate::files;
use crate::header::{Forked, Header};
use crate::journal::Journal;
use crate::store::{Opened, Store};

impl Store {
    /// Copies the events of a run up to and including `at` into a new run, and opens that.
    ///
    /// The run that is copied is only read, so it may be at work or damaged after `at`. It cannot be copied where
    /// an agent works in files of its own: there is one such place, and both runs would go on in it.
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
        let events = self.forked(run, at)?;
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

    /// Returns the events that a copy of a run up to and including `at` would begin with, or says why there
    /// cannot be one.
    pub fn forked(&self, run: &RunId, at: u64) -> Result<Vec<Event>, JournalError> {
        let events = self.events_upto(run, at)?;
        match at_work_in_own_files(run, &events) {
            Some(agent) => Err(JournalError::OwnFiles { run: run.clone(), at, agent }),
            None => Ok(events),
        }
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

/// Finds an agent that has files of its own and goes on in them: it did not end, or ended in a way in which it is taken
/// up together with its caller.
fn at_work_in_own_files(run: &RunId, events: &[Event]) -> Option<RunId> {
    let (mut with_files, mut ended) = (BTreeSet::new(), BTreeSet::new());
    let mut runs: BTreeMap<&RunId, Run> = BTreeMap::new();
    for event in events {
        runs.entry(&event.run).or_insert_with(|| Run::new(event.run.clone())).apply(event);
        match &event.body {
            EventBody::WorkspacePrepared { place, .. } if place.kind.is_own() => {
                with_files.insert(&event.run);
            }
            EventBody::RunEnded { .. } => {
                ended.insert(&event.run);
            }
            // One that ended may go on.
            EventBody::AgentSpawned { child, .. } => {
                ended.remove(child);
            }
            EventBody::RunResumed { .. } => {
                ended.remove(&event.run);
            }
            _ => {}
        }
    }
    let not_done = runs.values().flat_map(|run| run.unfinished().chain(run.without_model()));
    let taken_up: BTreeSet<&RunId> = not_done.map(|(agent, _)| agent).collect();
    let goes_on = |agent: &RunId| {
        let outcome = runs.get(agent).and_then(Run::outcome);
        taken_up.contains(agent) && outcome.is_some_and(Outcome::is_for_now)
    };
    let at_work = |agent: &&&RunId| !ended.contains(**agent) || goes_on(agent);
    with_files.iter().filter(|agent| **agent != run).find(at_work).map(|agent| (*agent).clone())
}

fn renamed(mut event: Event, from: &RunId, to: &RunId) -> Event {
    rename(&mut event.run, from, to);
    if let Some(parent) = &mut event.parent {
        rename(parent, from, to);
    }
    match &mut event.body {
        EventBody::AgentSpawned { child, .. }
        | EventBody::AgentWaits { child, .. }
        | EventBody::AgentEnded { child, .. } => rename(child, from, to),
        EventBody::BudgetExceeded { of: Some(of), .. } => rename(of, from, to),
        EventBody::RunResumed { again, .. } => {
            for agent in again {
                rename(agent, from, to);
            }
        }
        _ => {}
    }
    event
}

fn rename(id: &mut RunId, from: &RunId, to: &RunId) {
    match id.as_str().strip_prefix(from.as_str()) {
        Some("") => *id = to.clone(),
        Some(agent) if agent.starts_with('-') => *id = RunId::new(format!("{to}{agent}")),
        _ => {}
    }
}
