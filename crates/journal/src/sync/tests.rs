#![expect(clippy::disallowed_methods, reason = "tests look at what was made")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use convoke_core::event::VERSION;
use convoke_core::{AgentPath, Event, EventBody, Position, RunId, Timestamp};
use tempfile::TempDir;

use super::*;
use crate::{Journal, RunJournal, Store};

/// Counts what is asked of it; the first sync of a file waits until it is let go.
#[derive(Debug)]
struct CountingDisk {
    seen: Arc<Seen>,
    began: Sender<()>,
    gate: Mutex<Receiver<()>>,
    whole: Result<(), io::ErrorKind>,
    files: Result<(), io::ErrorKind>,
}

#[derive(Debug, Default)]
struct Seen {
    files: AtomicUsize,
    file_systems: AtomicUsize,
    paths: Mutex<Vec<PathBuf>>,
}

impl Seen {
    fn counts(&self) -> (usize, usize) {
        (self.files.load(Ordering::SeqCst), self.file_systems.load(Ordering::SeqCst))
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.paths.lock().unwrap().clone()
    }
}

impl Disk for CountingDisk {
    fn sync_file(&self, _: &File) -> io::Result<()> {
        if self.seen.files.fetch_add(1, Ordering::SeqCst) == 0 {
            self.began.send(()).unwrap_or_default();
            // An error means that nobody holds the gate.
            self.gate.lock().unwrap().recv().unwrap_or_default();
        }
        self.files.map_err(io::Error::from)
    }

    fn sync_path(&self, path: &Path) -> io::Result<()> {
        assert!(path.exists());
        self.seen.paths.lock().unwrap().push(path.to_path_buf());
        Ok(())
    }

    fn sync_file_system(&self, _: &File) -> io::Result<()> {
        self.seen.file_systems.fetch_add(1, Ordering::SeqCst);
        self.whole.map_err(io::Error::from)
    }
}

struct World {
    store: Store,
    seen: Arc<Seen>,
    began: Receiver<()>,
    gate: Sender<()>,
    directory: TempDir,
}

fn world(whole: Result<(), io::ErrorKind>, files: Result<(), io::ErrorKind>) -> World {
    let directory = tempfile::tempdir().unwrap();
    let seen = Arc::new(Seen::default());
    let (began_sender, began) = channel();
    let (gate, gate_receiver) = channel();
    let disk = CountingDisk {
        seen: Arc::clone(&seen),
        began: began_sender,
        gate: Mutex::new(gate_receiver),
        whole,
        files,
    };
    let store = Store::on(directory.path().join("state"), disk);
    World { store, seen, began, gate, directory }
}

fn event(run: &RunId, seq: u64, text: &str) -> Event {
    Event {
        v: VERSION,
        position: Position::Durable { seq },
        ts: Timestamp::from_millis(1),
        run: run.clone(),
        parent: None,
        agent: AgentPath::default(),
        call: None,
        secrets: BTreeSet::new(),
        body: EventBody::Notice { message: text.into() },
    }
}

fn journal(store: &Store, name: &str) -> RunJournal {
    let run = RunId::new(name);
    let journal = store.create(&run, Timestamp::default()).unwrap();
    journal.append(&event(&run, 1, "x")).unwrap();
    journal
}

#[test]
fn what_gathers_during_a_round_is_synced_with_one_call() {
    let World { store, seen, began, gate, directory: _directory } = world(Ok(()), Ok(()));
    let first = journal(&store, "first");
    let first_sync = first.sync();
    began.recv().unwrap();
    let others: Vec<_> = (0..20).map(|n| journal(&store, &format!("other-{n}"))).collect();
    let syncs: Vec<_> = others.iter().map(Journal::sync).collect();
    others.iter().for_each(Journal::request_sync);
    gate.send(()).unwrap();
    first_sync.wait().unwrap();
    for sync in syncs {
        sync.wait().unwrap();
    }
    assert_eq!(seen.counts(), (1, 1));
}

#[test]
fn a_few_files_are_synced_one_by_one_and_shared_directories_once() {
    let World { store, seen, began, gate, directory } = world(Ok(()), Ok(()));
    let first = journal(&store, "first");
    let first_sync = first.sync();
    began.recv().unwrap();
    let others: Vec<_> = (0..3).map(|n| journal(&store, &format!("other-{n}"))).collect();
    let syncs: Vec<_> = others.iter().map(Journal::sync).collect();
    gate.send(()).unwrap();
    first_sync.wait().unwrap();
    for sync in syncs {
        sync.wait().unwrap();
    }
    assert_eq!(seen.counts(), (4, 0));
    let state = directory.path().join("state");
    let runs = state.join("runs");
    let times = |path: &Path| seen.paths().iter().filter(|seen| *seen == path).count();
    // Once in the round of the first, once in the round of all others.
    assert_eq!(times(&runs), 2);
    assert_eq!(times(&runs.join("other-1")), 1);
    // The state directory itself is new too.
    assert_eq!((times(&state), times(directory.path())), (1, 1));
}

#[test]
fn what_is_written_while_a_round_runs_belongs_to_the_next() {
    let World { store, seen, began, gate, directory: _directory } = world(Ok(()), Ok(()));
    let journal = journal(&store, "run");
    let before = journal.sync();
    began.recv().unwrap();
    journal.append(&event(journal.run(), 2, "y")).unwrap();
    let after = journal.sync();
    gate.send(()).unwrap();
    before.wait().unwrap();
    after.wait().unwrap();
    assert_eq!(seen.counts(), (2, 0));
    // Nothing is new: nothing is done.
    journal.sync().wait().unwrap();
    journal.request_sync();
    assert_eq!(seen.counts(), (2, 0));
}

#[test]
fn blobs_and_their_directory_are_synced_with_the_line_that_needs_them() {
    let World { store, seen, began: _began, gate, directory: _directory } = world(Ok(()), Ok(()));
    drop(gate);
    let journal = journal(&store, "run");
    journal.sync().wait().unwrap();
    let before = seen.paths().len();
    journal.append(&event(journal.run(), 2, &"long ".repeat(20_000))).unwrap();
    journal.sync().wait().unwrap();
    let paths = seen.paths().split_off(before);
    let blobs = journal.directory().join("blobs");
    let blob = std::fs::read_dir(&blobs).unwrap().next().unwrap().unwrap().path();
    assert_eq!(paths, [blob, journal.directory().to_path_buf(), blobs]);
}

#[test]
fn blobs_of_a_process_that_died_are_synced_when_its_run_goes_on() {
    let World { store, seen, began: _began, gate, directory: _directory } = world(Ok(()), Ok(()));
    drop(gate);
    let journal = journal(&store, "run");
    let run = journal.run().clone();
    journal.append(&event(&run, 2, &"long ".repeat(20_000))).unwrap();
    let blobs = journal.directory().join("blobs");
    drop(journal);
    assert_eq!(seen.paths(), [] as [PathBuf; 0]);
    let opened = store.open(&run, Timestamp::default()).unwrap();
    opened.journal.sync().wait().unwrap();
    let blob = std::fs::read_dir(&blobs).unwrap().next().unwrap().unwrap().path();
    assert!(seen.paths().contains(&blob) && seen.paths().contains(&blobs));
    // With many of them, one call serves all.
    for seq in 3..20 {
        let text = format!("{seq} ").repeat(20_000);
        opened.journal.append(&event(&run, seq, &text)).unwrap();
    }
    opened.journal.sync().wait().unwrap();
    assert_eq!(seen.counts(), (1, 1));
}

#[test]
fn where_the_file_system_cannot_be_synced_each_file_is() {
    let World { store, seen, began, gate, directory: _directory } =
        world(Err(io::ErrorKind::Unsupported), Ok(()));
    let first = journal(&store, "first");
    first.request_sync();
    began.recv().unwrap();
    let others: Vec<_> = (0..20).map(|n| journal(&store, &format!("other-{n}"))).collect();
    let syncs: Vec<_> = others.iter().map(Journal::sync).collect();
    gate.send(()).unwrap();
    for sync in syncs {
        sync.wait().unwrap();
    }
    assert_eq!(seen.counts(), (21, 1));
}

#[test]
fn a_sync_that_failed_closes_the_journal() {
    let World { store, seen: _seen, began: _began, gate, directory: _directory } =
        world(Ok(()), Err(io::ErrorKind::StorageFull));
    drop(gate);
    let journal = journal(&store, "run");
    let error = journal.sync().wait().unwrap_err();
    assert!(matches!(error.first(), JournalError::Full { action: "sync", .. }), "{error:?}");
    let again = journal.append(&event(journal.run(), 2, "y")).unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
    assert!(journal.sync().wait().is_err());
}

#[test]
fn strict_events_are_on_the_disk_when_they_are_accepted() {
    let World { store, seen, began: _began, gate, directory: _directory } = world(Ok(()), Ok(()));
    drop(gate);
    let journal = journal(&store.durability(Durability::Strict), "run");
    assert_eq!(seen.counts(), (1, 0));
    journal.append(&event(journal.run(), 2, "y")).unwrap();
    assert_eq!(seen.counts(), (2, 0));
}

#[test]
fn relaxed_journals_wait_for_nothing() {
    let World { store, seen, began: _began, gate: _gate, directory: _directory } =
        world(Ok(()), Err(io::ErrorKind::StorageFull));
    let journal = journal(&store.durability(Durability::Relaxed), "run");
    journal.request_sync();
    journal.sync().wait().unwrap();
    assert_eq!(seen.counts(), (0, 0));
}

#[test]
fn dropping_everything_while_a_sync_runs_does_not_hang_and_loses_no_request() {
    let World { store, seen, began, gate, directory } = world(Ok(()), Ok(()));
    let first = journal(&store, "first");
    let second = journal(&store, "second");
    first.request_sync();
    began.recv().unwrap();
    let waiting = second.sync();
    drop((first, second, store));
    // The lock went with the journal, although its file is still being synced.
    let store = Store::at(directory.path().join("state"));
    assert!(store.open(&RunId::new("first"), Timestamp::default()).is_ok());
    gate.send(()).unwrap();
    waiting.wait().unwrap();
    assert_eq!(seen.counts(), (2, 0));
}

#[test]
fn the_thread_ends_with_the_last_user() {
    let World { store, seen, began: _began, gate, directory: _directory } = world(Ok(()), Ok(()));
    drop(gate);
    let shared = Arc::downgrade(&store.syncer_for_tests().0);
    let journal = journal(&store, "run");
    journal.sync().wait().unwrap();
    drop((journal, store));
    // The thread lets go of what it shares when it ends; this only waits for that.
    while shared.strong_count() > 0 {
        thread::yield_now();
    }
    assert_eq!(seen.counts(), (1, 0));
}

/// Somebody who waited for a line that another wrote after the sync was asked for waited forever.
#[test]
fn who_waits_while_others_write_does_not_wait_for_what_nobody_asked_for() {
    let world = tempfile::tempdir().unwrap();
    let store = Store::at(world.path());
    let journal = Arc::new(journal(&store, "busy"));
    let (writer, run) = (Arc::clone(&journal), RunId::new("busy"));
    let (done, ended) = channel();
    let is_over = Arc::new(AtomicUsize::new(0));
    let over = Arc::clone(&is_over);
    let writing = thread::spawn(move || {
        for seq in (2..).take_while(|_| over.load(Ordering::Relaxed) == 0) {
            writer.append(&event(&run, seq, "more")).unwrap();
        }
    });
    thread::spawn(move || {
        for _ in 0..50 {
            journal.sync().wait().unwrap();
        }
        done.send(()).unwrap_or_default();
    });
    let waited = ended.recv_timeout(std::time::Duration::from_mins(2));
    is_over.store(1, Ordering::Relaxed);
    writing.join().unwrap();
    assert!(waited.is_ok(), "it waits forever");
}
