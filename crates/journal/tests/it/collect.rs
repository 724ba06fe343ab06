//! Old runs go, others stay.

use std::fs;
use std::time::Duration;

use convoke_core::{Cause, Event, EventBody, Timestamp, Usage};
use convoke_journal::{Journal, Policy, Store, Unfinished};

use crate::support::{NOW, World, event, id, world};

const DAY: Duration = Duration::from_hours(24);

fn ended(run: &str, days_ago: u32) -> Event {
    let usage = Usage::default();
    let body = EventBody::RunEnded { outcome: Cause::Goal.into(), answer: None, usage };
    let mut event = event(run, 1, body);
    let ago = i64::try_from((DAY * days_ago).as_millis()).unwrap();
    event.ts = Timestamp::from_millis(NOW.as_millis() - ago);
    event
}

/// Four ended runs, one, two, three and four days old, and an interrupted one of nine days.
fn runs() -> World {
    let world = world();
    for days in 1..=4 {
        let run = format!("day-{days}");
        world.record(&run, &[ended(&run, days)]);
    }
    let mut old = crate::support::notice("broken", 1, "x");
    old.ts = ended("broken", 9).ts;
    world.record("broken", &[old]);
    world
}

fn would_go(store: &Store, policy: Policy) -> Vec<String> {
    let collected = store.collectable(&policy, NOW).unwrap();
    collected.into_iter().map(|one| one.run.to_string()).collect()
}

/// codex#35091: what is kept can be held to a number of bytes.
#[test]
fn each_rule_chooses_and_none_chooses_nothing() {
    let world = runs();
    let none = Policy::default();
    let bytes = world.store.list().unwrap().iter().map(|run| run.bytes).sum::<u64>();
    let all_but_one = Some(bytes - 1);
    for (policy, expected) in [
        (none, vec![]),
        (Policy { older_than: Some(DAY * 5 / 2), ..none }, vec!["day-4", "day-3"]),
        (Policy { older_than: Some(DAY * 5 / 2), keep: Some(3), ..none }, vec!["day-4"]),
        (Policy { keep: Some(2), ..none }, vec!["day-4", "day-3"]),
        (Policy { keep: Some(9), ..none }, vec![]),
        (Policy { max_bytes: all_but_one, ..none }, vec!["day-4"]),
        (Policy { max_bytes: Some(0), ..none }, vec!["day-4", "day-3", "day-2", "day-1"]),
        (Policy { max_bytes: Some(0), keep: Some(3), ..none }, vec!["day-4"]),
        (Policy { max_bytes: Some(bytes), ..none }, vec![]),
        (
            Policy { older_than: Some(DAY * 7 / 2), unfinished: Unfinished::Remove, ..none },
            vec!["broken", "day-4"],
        ),
    ] {
        assert_eq!(would_go(&world.store, policy), expected, "{policy:?}");
    }
    assert_eq!(world.store.list().unwrap().len(), 5, "saying so removes nothing");
}

#[test]
fn what_is_chosen_is_removed_and_what_is_open_stays() {
    let world = runs();
    let open = world.store.open(&id("day-4"), NOW).unwrap();
    let policy = Policy { max_bytes: Some(0), unfinished: Unfinished::Remove, ..Policy::default() };
    let collection = world.store.collect(&policy, NOW).unwrap();
    let removed: Vec<&str> = collection.removed.iter().map(|one| one.run.as_str()).collect();
    assert_eq!(removed, ["broken", "day-3", "day-2", "day-1"]);
    assert!(collection.failed.is_empty());
    assert!(collection.removed.iter().all(|one| one.bytes > 0));
    let left: Vec<_> = fs::read_dir(world.state.path().join("runs")).unwrap().collect();
    assert_eq!(left.len(), 1);
    open.journal.append(&crate::support::notice("day-4", 2, "x")).unwrap();
}

#[test]
fn what_a_crash_left_half_removed_goes_when_it_is_old() {
    let world = runs();
    let half = world.directory(".removed-old-1");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("journal.jsonl"), "x").unwrap();
    let modified = fs::metadata(&half).unwrap().modified().unwrap();
    let made = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
    let made = Timestamp::default().after(made);
    world.store.collect(&Policy::default(), made).unwrap();
    assert!(half.exists(), "somebody may be at it");
    world.store.collect(&Policy::default(), made.after(DAY)).unwrap();
    assert!(!half.exists());
    assert_eq!(world.store.list().unwrap().len(), 5);
}
