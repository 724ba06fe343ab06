//! Copies of runs.

use std::fs;
use std::os::unix::fs::MetadataExt;

use convoke_core::Timestamp;
use convoke_journal::{Forked, Journal, JournalError};

use crate::support::{NOW, id, notice, notices, world};

#[test]
fn a_fork_has_the_events_under_its_own_name() {
    let world = world();
    let mut events = notices("old", 4);
    events[1].run = id("child");
    events[1].parent = Some(id("old"));
    events[2].run = id("grandchild");
    events[2].parent = Some(id("child"));
    world.record("old", &events);
    let before = world.bytes("old");

    let later = Timestamp::from_millis(NOW.as_millis() + 1000);
    let forked = world.store.fork(&id("old"), 3, &id("new"), later).unwrap();
    let mut expected = events[..3].to_vec();
    expected[0].run = id("new");
    expected[1].parent = Some(id("new"));
    assert_eq!(forked.events, expected);
    assert_eq!((forked.repaired, &forked.died), (None, &None));
    forked.journal.append(&notice("new", 4, "another way")).unwrap();
    drop(forked);

    let read = world.store.read(&id("new")).unwrap();
    assert_eq!((read.events.len(), read.damage, read.created), (4, None, later));
    let from = Some(Forked { run: id("old"), at: 3 });
    assert_eq!(read.forked_from, from);
    let listed = world.store.list().unwrap();
    assert_eq!((&listed[0].run, &listed[0].forked_from), (&id("new"), &from));
    assert_eq!(world.bytes("old"), before);
}

#[test]
fn blobs_are_shared_and_those_that_are_not_needed_stay_behind() {
    let world = world();
    let texts = ["a".repeat(40_000), "b".repeat(40_000)];
    world.record("old", &[notice("old", 1, &texts[0]), notice("old", 2, &texts[1])]);
    let forked = world.store.fork(&id("old"), 1, &id("new"), NOW).unwrap();
    assert_eq!(forked.events, [notice("new", 1, &texts[0])]);
    let blobs = world.directory("new").join("blobs");
    let entries: Vec<_> = fs::read_dir(blobs).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].metadata().unwrap().nlink(), 2);
    drop(forked);
    world.store.remove(&id("old")).unwrap();
    assert_eq!(world.store.read(&id("new")).unwrap().events, [notice("new", 1, &texts[0])]);
}

#[test]
fn a_fork_needs_an_event_and_a_free_name() {
    let world = world();
    world.record("old", &notices("old", 2));
    world.record("taken", &[]);
    for at in [0, 3] {
        let error = world.store.fork(&id("old"), at, &id("new"), NOW).unwrap_err();
        assert!(matches!(error, JournalError::NoSuchEvent { last: 2, .. }), "{error:?}");
    }
    let error = world.store.fork(&id("old"), 1, &id("taken"), NOW).unwrap_err();
    assert!(matches!(error, JournalError::Taken { .. }), "{error:?}");
    let error = world.store.fork(&id("none"), 1, &id("new"), NOW).unwrap_err();
    assert!(matches!(error, JournalError::NotFound { .. }), "{error:?}");
    let mut names: Vec<_> = fs::read_dir(world.state.path().join("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["old", "taken"]);
}

#[test]
fn a_run_at_work_can_be_forked() {
    let world = world();
    let journal = world.store.create(&id("old"), NOW).unwrap();
    journal.append(&notice("old", 1, "x")).unwrap();
    let forked = world.store.fork(&id("old"), 1, &id("new"), NOW).unwrap();
    journal.append(&notice("old", 2, "y")).unwrap();
    forked.journal.append(&notice("new", 2, "z")).unwrap();
    assert_eq!(world.store.read(&id("old")).unwrap().events.len(), 2);
    assert_eq!(world.store.read(&id("new")).unwrap().events[1], notice("new", 2, "z"));
}
