//! What a crash leaves at the end.

use std::fs;

use convoke_journal::{Condition, Journal, JournalError, Reason, Repair};

use crate::support::{NOW, id, newlines, notice, notices, world};

#[test]
fn a_line_torn_anywhere_is_cut_off_and_said() {
    let world = world();
    let events = notices("run", 6);
    world.record("run", &events);
    let whole = world.bytes("run");
    for cut in whole.len() - 300..whole.len() {
        let torn = &whole[..cut];
        fs::write(world.journal("run"), torn).unwrap();
        let intact = torn.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        let lines = newlines(torn);

        let read = world.store.read(&id("run")).unwrap();
        assert_eq!((read.events.len(), read.damage), (lines - 1, None));
        assert_eq!(world.bytes("run"), torn, "reading changes nothing");

        let opened = world.store.open(&id("run"), NOW).unwrap();
        let bytes = (cut - intact) as u64;
        let repair = Repair { bytes, at_line: lines as u64 + 1 };
        assert_eq!(opened.repaired, (bytes > 0).then_some(repair), "{cut}");
        assert_eq!(opened.events, events[..lines - 1]);
        assert_eq!(world.bytes("run"), whole[..intact]);

        for event in &events[lines - 1..] {
            opened.journal.append(event).unwrap();
        }
        assert_eq!(world.bytes("run"), whole, "it goes on as if nothing had happened");
    }
}

#[test]
fn what_a_power_loss_leaves_is_cut_off() {
    let world = world();
    let events = notices("run", 3);
    world.record("run", &events);
    let whole = world.bytes("run");
    let lines = world.lines("run");
    let half = &lines[3][..lines[3].len() / 2];
    let tails: [(&str, u64); 3] =
        [("\0\0\0\0\0\0\0\0", 5), ("\0\0\0\0\n", 5), ("{\"prev\":\"0\0\0\0\"}\n", 5)];
    for (tail, at_line) in tails {
        fs::write(world.journal("run"), [&whole, tail.as_bytes()].concat()).unwrap();
        assert_eq!(world.store.list().unwrap()[0].problem, None, "{tail:?}");
        let opened = world.store.open(&id("run"), NOW).unwrap();
        assert_eq!(opened.repaired, Some(Repair { bytes: tail.len() as u64, at_line }));
        assert_eq!(opened.events, events);
        assert_eq!(world.bytes("run"), whole);
    }
    let halved = format!("{}\n{}\n{}\n{half}\0\0\0\0\n", lines[0], lines[1], lines[2]);
    fs::write(world.journal("run"), halved).unwrap();
    let opened = world.store.open(&id("run"), NOW).unwrap();
    assert_eq!(opened.repaired.unwrap().at_line, 4);
    assert_eq!(opened.events, events[..2]);
}

/// It was once cut off as if a crash had torn it, and with it went what somebody had put in its place.
#[test]
fn a_whole_line_that_is_no_json_is_damage() {
    let world = world();
    world.record("run", &notices("run", 3));
    let whole = world.bytes("run");
    let last = world.lines("run").pop().unwrap();
    let before = &whole[..whole.len() - last.len() - 1];
    for (kept, line, events) in [
        (&whole[..], "this is no JSON", 3),
        (&whole[..], "", 3),
        (before, &last[..last.len() - 9], 2),
        (&b""[..], "no header", 0),
    ] {
        let changed = [kept, line.as_bytes(), b"\n"].concat();
        fs::write(world.journal("run"), &changed).unwrap();
        let opened = world.store.open(&id("run"), NOW).map(drop).unwrap_err();
        let JournalError::Damaged { damage, .. } = &opened else { panic!("{opened:?}") };
        assert_eq!((damage.seq_before, &damage.reason), (events, &Reason::NotJson), "{line}");
        match world.store.read(&id("run")) {
            Ok(read) => assert_eq!(read.damage.as_ref(), Some(damage)),
            Err(error) => assert_eq!(error.to_string(), opened.to_string()),
        }
        assert!(world.store.list().unwrap()[0].problem.is_some(), "{line}");
        assert_eq!(world.bytes("run"), changed, "nothing is cut off");
    }
}

#[test]
fn a_run_that_died_at_once_says_so() {
    let world = world();
    world.record("run", &[]);
    let header = world.bytes("run");
    for length in [0, 1, 20, header.len() - 1] {
        fs::write(world.journal("run"), &header[..length]).unwrap();
        for error in [
            world.store.open(&id("run"), NOW).map(drop).unwrap_err(),
            world.store.read(&id("run")).map(drop).unwrap_err(),
        ] {
            assert!(matches!(error, JournalError::Empty { .. }), "{error:?}");
        }
        let listed = &world.store.list().unwrap()[0];
        assert_eq!((&listed.problem, listed.condition), (&None, Condition::NeverStarted));
    }
    world.store.remove(&id("run")).unwrap();
    fs::create_dir(world.directory("bare")).unwrap();
    assert_eq!(world.store.list().unwrap(), []);
    world.store.remove(&id("bare")).unwrap();
    assert!(!world.directory("bare").exists());
}

#[test]
fn a_line_that_is_still_being_written_is_not_there_yet() {
    let world = world();
    let journal = world.store.create(&id("run"), NOW).unwrap();
    journal.append(&notice("run", 1, "x")).unwrap();
    let before = world.store.list().unwrap();
    let whole = world.bytes("run");
    fs::write(world.journal("run"), [&whole[..], b"{\"prev\":\"12"].concat()).unwrap();
    let read = world.store.read(&id("run")).unwrap();
    assert_eq!((read.events.len(), read.damage), (1, None));
    let listed = world.store.list().unwrap();
    assert_eq!((listed[0].events, &listed[0].problem), (before[0].events, &None));
}
