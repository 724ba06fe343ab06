//! One process at a time.

use std::fs;
use std::time::Duration;

use convoke_journal::{Condition, Journal, JournalError};

use crate::child;
use crate::support::{NOW, id, notice, world};

/// codex#39015, #35091: two processes never write one journal.
#[test]
fn a_second_process_is_told_who_works_on_the_run() {
    let world = world();
    let mut holder = child::start_holder(world.state.path());
    let pid = holder.id();
    for error in [
        world.store.open(&id("held"), NOW).map(drop).unwrap_err(),
        world.store.remove(&id("held")).unwrap_err(),
    ] {
        let JournalError::Busy { owner: Some(owner), .. } = &error else { panic!("{error:?}") };
        assert_eq!((owner.pid, owner.since), (pid, NOW));
        let text = error.to_string();
        assert!(text.contains(&format!("process {pid} on `")), "{text}");
        assert!(text.contains("since 2026-03-01 12:34:56 UTC"), "{text}");
    }
    assert_eq!(world.store.read(&id("held")).unwrap().events, [notice("held", 1, "x")]);
    assert_eq!(world.store.list().unwrap()[0].condition, Condition::Running);

    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    assert!(!world.directory("held").join("lock").exists());
    assert_eq!(world.store.list().unwrap()[0].condition, Condition::Interrupted);
    let opened = world.store.open(&id("held"), NOW).unwrap();
    assert_eq!((opened.events.len(), opened.died), (1, None));
}

#[test]
fn the_lock_of_a_killed_process_is_taken_over_and_said() {
    let world = world();
    let mut holder = child::start_holder(world.state.path());
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(world.directory("held").join("lock").exists());
    assert_eq!(world.store.list().unwrap()[0].condition, Condition::Interrupted);
    let opened = world.store.open(&id("held"), NOW).unwrap();
    assert_eq!(opened.died.unwrap().pid, holder.id());
    opened.journal.append(&notice("held", 2, "y")).unwrap();
    drop(opened.journal);
    assert_eq!(world.store.open(&id("held"), NOW).unwrap().died, None);
}

#[test]
fn two_openers_in_one_process_exclude_each_other_too() {
    let world = world();
    let journal = world.store.create(&id("run"), NOW).unwrap();
    let error = world.store.open(&id("run"), NOW).unwrap_err();
    assert!(matches!(error, JournalError::Busy { .. }), "{error:?}");
    drop(journal);
    assert!(world.store.open(&id("run"), NOW).is_ok());
}

#[test]
fn a_lock_file_nobody_can_read_is_no_obstacle() {
    let world = world();
    let journal = world.store.create(&id("run"), NOW).unwrap();
    fs::write(world.directory("run").join("lock"), "\0").unwrap();
    let error = world.store.open(&id("run"), NOW).unwrap_err();
    assert_eq!(error.to_string(), "run `run` is being worked on; wait until that ends, or stop it");
    drop(journal);
    assert!(world.store.open(&id("run"), NOW).is_ok());
}

/// codex#46269, #20213, #35555, #30105: nothing that is only looked up locks anybody out.
#[test]
fn listing_never_keeps_anybody_from_opening() {
    let world = world();
    world.record("run", &[notice("run", 1, "x")]);
    std::thread::scope(|scope| {
        let lists = scope.spawn(|| {
            (0..200).for_each(|_| assert_eq!(world.store.list().unwrap().len(), 1));
        });
        for _ in 0..200 {
            drop(world.store.open(&id("run"), NOW).unwrap());
        }
        lists.join().unwrap();
    });
}

/// A program that a process was starting when it was killed has the lock for a moment.
#[test]
fn lock_that_outlives_its_killed_owner_for_a_moment_is_waited_for() {
    let world = world();
    let mut holder = child::start_holder(world.state.path());
    holder.kill().unwrap();
    holder.wait().unwrap();
    let file = fs::OpenOptions::new().read(true).open(world.journal("held")).unwrap();
    file.lock().unwrap();
    let error = world.store.open(&id("held"), NOW).map(drop).unwrap_err();
    assert!(matches!(error, JournalError::Busy { owner: None, .. }), "bounded: {error:?}");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            file.unlock().unwrap();
        });
        assert_eq!(world.store.open(&id("held"), NOW).unwrap().events.len(), 1);
    });
}
