//! Copies of runs.

use std::fs;
use std::os::unix::fs::MetadataExt;

use convoke_core::{
    Cause, Event, EventBody, Outcome, Status, Timestamp, Usage, WorkspaceKind, WorkspacePlace,
};
use convoke_journal::{Forked, Journal, JournalError};
use serde_json::Value;

use crate::support::{NOW, event, id, notice, notices, world};

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

fn spawned(seq: u64, child: &str) -> Event {
    let (child, name) = (id(child), "helper".to_owned());
    let inputs = serde_json::Map::new();
    let body = EventBody::AgentSpawned { child, name, inputs, background: false, continued: false };
    event("old", seq, body)
}

fn ended() -> Outcome {
    Outcome {
        status: Status::Completed,
        cause: Cause::Goal,
        recovered: false,
        partial: None,
        message: None,
    }
}

/// Two runs with the same agents would work in the same files.
#[test]
fn a_fork_has_agents_of_its_own() {
    let world = world();
    let waits = EventBody::AgentWaits { child: id("old-a"), waits: true };
    let (outcome, usage) = (ended(), Usage::default());
    let end = EventBody::AgentEnded { child: id("old-a"), outcome, usage, message: None };
    let mut events = vec![
        spawned(1, "old-a"),
        notice("old-a", 2, "begun"),
        notice("old-a-b", 3, "below"),
        notice("older", 4, "another name"),
        event("old", 5, waits),
        event("old", 6, end),
    ];
    events[1].parent = Some(id("old"));
    events[2].parent = Some(id("old-a"));
    events[3].parent = Some(id("old"));
    world.record("old", &events);
    let forked = world.store.fork(&id("old"), 6, &id("new"), NOW).unwrap();
    let told = |event: &Event| {
        let child = match &event.body {
            EventBody::AgentSpawned { child, .. }
            | EventBody::AgentWaits { child, .. }
            | EventBody::AgentEnded { child, .. } => Some(child),
            _ => event.parent.as_ref(),
        };
        (event.run.to_string(), child.map(ToString::to_string).unwrap_or_default())
    };
    let expected = [
        ("new", "new-a"),
        ("new-a", "new"),
        ("new-a-b", "new-a"),
        ("older", "new"),
        ("new", "new-a"),
        ("new", "new-a"),
    ];
    let expected = expected.map(|(run, other)| (run.to_owned(), other.to_owned()));
    assert_eq!(forked.events.iter().map(told).collect::<Vec<_>>(), expected);
}

#[test]
fn a_run_is_not_forked_where_an_agent_works_in_files_of_its_own() {
    let world = world();
    let prepared = |kind| {
        let place = WorkspacePlace { kind, path: "/copies/x".to_owned(), branch: None, base: None };
        EventBody::WorkspacePrepared { place, notes: Vec::new() }
    };
    let end = || EventBody::RunEnded { outcome: ended(), answer: None, usage: Usage::default() };
    let below = |run: &str, seq, body| Event { parent: Some(id("old")), ..event(run, seq, body) };
    let events = [
        spawned(1, "old-a"),
        below("old-a", 2, prepared(WorkspaceKind::Readonly)),
        below("old-a", 3, prepared(WorkspaceKind::Copy)),
        below("old-a", 4, end()),
        notice("old", 5, "more"),
        spawned(6, "old-a"),
        below("old-a", 7, end()),
    ];
    world.record("old", &events);
    let forks = |at: u64| {
        let new = id(&format!("new{at}"));
        world.store.fork(&id("old"), at, &new, NOW).map(drop).map_err(|error| error.to_string())
    };
    for at in [1, 2, 4, 5, 7] {
        assert_eq!(forks(at), Ok(()), "{at}");
    }
    for at in [3, 6] {
        let said = forks(at).unwrap_err();
        assert!(said.contains("its agent `old-a` works in files of its own"), "{at}: {said}");
    }
}

/// Bug: an agent that waited for a person, or went on without another call, was taken for ended. Its copy would have had
/// new files, and believed to find its changes in them.
#[test]
fn a_run_is_not_forked_where_an_agent_goes_on_in_files_of_its_own() {
    let world = world();
    let place = WorkspacePlace {
        kind: WorkspaceKind::Copy,
        path: "/copies/x".to_owned(),
        branch: None,
        base: None,
    };
    let parked = Outcome { status: Status::Parked, cause: Cause::AwaitsApproval, ..ended() };
    let mut begins = spawned(1, "old-a");
    if let EventBody::AgentSpawned { background, .. } = &mut begins.body {
        *background = true;
    }
    let below = |seq, body| Event { parent: Some(id("old")), ..event("old-a", seq, body) };
    let ends = |seq, outcome: &Outcome| {
        let (outcome, usage) = (outcome.clone(), Usage::default());
        below(seq, EventBody::RunEnded { outcome, answer: None, usage })
    };
    let is_told = |seq, outcome: &Outcome| {
        let (child, outcome, usage) = (id("old-a"), outcome.clone(), Usage::default());
        event("old", seq, EventBody::AgentEnded { child, outcome, usage, message: None })
    };
    let resumed = EventBody::RunResumed {
        model: None,
        settings: None,
        lost: Usage::default(),
        anything_else: false,
        redirected: false,
        again: Vec::new(),
        origin: Value::Null,
    };
    world.record(
        "old",
        &[
            begins,
            below(2, EventBody::WorkspacePrepared { place, notes: Vec::new() }),
            ends(3, &parked),
            is_told(4, &parked),
            below(5, resumed),
            ends(6, &ended()),
            is_told(7, &ended()),
        ],
    );
    let forks =
        |at: u64| world.store.fork(&id("old"), at, &id(&format!("new{at}")), NOW).map(drop).is_ok();
    let (free, taken): (Vec<u64>, Vec<u64>) = (1..=7).partition(|at| forks(*at));
    assert_eq!((free, taken), (vec![1, 6, 7], vec![2, 3, 4, 5]));
}

/// Bug: which agents of a run went on after an outage was lost in the copy, and with it what they then answered.
#[test]
fn a_fork_names_the_agents_that_went_on_again() {
    let world = world();
    let resumed = EventBody::RunResumed {
        model: None,
        settings: None,
        lost: Usage::default(),
        anything_else: false,
        redirected: false,
        again: vec![id("old-a"), id("old-a-b")],
        origin: Value::Null,
    };
    world.record("old", &[spawned(1, "old-a"), event("old", 2, resumed)]);
    let forked = world.store.fork(&id("old"), 2, &id("new"), NOW).unwrap();
    let EventBody::RunResumed { again, .. } = &forked.events[1].body else { panic!("{forked:?}") };
    assert_eq!(*again, [id("new-a"), id("new-a-b")]);
}
