//! What most tests need: a store in a temporary directory, and events.

use std::fs;
use std::path::PathBuf;

use convoke_core::event::VERSION;
use convoke_core::{AgentPath, Event, EventBody, Position, RunId, Timestamp};
use convoke_journal::{Journal, Store};
use tempfile::TempDir;

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_772_368_496_000);

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) state: TempDir,
}

pub(crate) fn world() -> World {
    let state = tempfile::tempdir().unwrap();
    World { store: Store::at(state.path()), state }
}

impl World {
    pub(crate) fn directory(&self, run: &str) -> PathBuf {
        self.state.path().join("runs").join(run)
    }

    pub(crate) fn journal(&self, run: &str) -> PathBuf {
        self.directory(run).join("journal.jsonl")
    }

    pub(crate) fn bytes(&self, run: &str) -> Vec<u8> {
        fs::read(self.journal(run)).unwrap()
    }

    pub(crate) fn lines(&self, run: &str) -> Vec<String> {
        String::from_utf8(self.bytes(run)).unwrap().lines().map(str::to_owned).collect()
    }

    /// Records a run with these events and closes it.
    pub(crate) fn record(&self, run: &str, events: &[Event]) {
        let journal = self.store.create(&id(run), NOW).unwrap();
        for event in events {
            journal.append(event).unwrap();
        }
    }
}

pub(crate) fn id(run: &str) -> RunId {
    RunId::new(run)
}

pub(crate) fn event(run: &str, seq: u64, body: EventBody) -> Event {
    Event {
        v: VERSION,
        position: Position::Durable { seq },
        ts: Timestamp::from_millis(NOW.as_millis() + i64::try_from(seq).unwrap()),
        run: id(run),
        parent: None,
        agent: AgentPath::default(),
        call: None,
        secrets: std::collections::BTreeSet::new(),
        body,
    }
}

pub(crate) fn notice(run: &str, seq: u64, text: &str) -> Event {
    event(run, seq, EventBody::Notice { message: text.into() })
}

pub(crate) fn notices(run: &str, count: u64) -> Vec<Event> {
    (1..=count).map(|seq| notice(run, seq, &format!("number {seq}"))).collect()
}

pub(crate) fn newlines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}
