//! The head that is kept apart: what it tells from what was recorded.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use convoke_core::Timestamp;
use convoke_journal::{
    Damage, Durability, Journal, JournalError, Policy, Reason, Store, Unfinished, Vouched,
};
use sha2::{Digest, Sha256};

use crate::support::{NOW, World, id, notice, notices, world};

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Records a run with this many events, and waits until all are on the disk.
fn synced(world: &World, run: &str, count: u64) {
    let journal = world.store.create(&id(run), NOW).unwrap();
    for event in notices(run, count) {
        journal.append(&event).unwrap();
    }
    journal.sync().wait().unwrap();
}

fn head(world: &World, run: &str) -> std::path::PathBuf {
    world.state.path().join("heads").join(run)
}

/// Makes all hashes of these lines anew, as somebody would who changed one of them and knows the format.
fn made_anew(lines: &[String]) -> String {
    let mut text = String::new();
    let mut prev = None;
    for line in lines {
        let (content, _) = line.rsplit_once(",\"sum\":\"").unwrap();
        let content = match &prev {
            None => content.to_owned(),
            Some(prev) => format!("{{\"prev\":\"{prev}\"{}", &content[10 + 64..]),
        };
        let line = format!("{content},\"sum\":\"{}\"}}", &sha256(content.as_bytes())[..16]);
        prev = Some(sha256(line.as_bytes()));
        text += &line;
        text.push('\n');
    }
    text
}

fn damage(world: &World, run: &str) -> Damage {
    let recorded = world.store.read(&id(run)).unwrap();
    let found = recorded.damage.unwrap();
    let error = world.store.open(&id(run), NOW).unwrap_err();
    let JournalError::Damaged { damage, .. } = error else { panic!("{error:?}") };
    assert_eq!(damage, found, "whoever resumes it is told the same");
    found
}

#[test]
fn a_head_is_written_with_a_sync_and_vouches_up_to_there() {
    let world = world();
    let journal = world.store.create(&id("run"), NOW).unwrap();
    let events = notices("run", 5);
    journal.append(&events[0]).unwrap();
    assert_eq!(world.store.read(&id("run")).unwrap().vouched, Vouched::NoHead);
    assert!(!head(&world, "run").exists());
    journal.append(&events[1]).unwrap();
    journal.sync().wait().unwrap();
    journal.append(&events[2]).unwrap();
    let recorded = world.store.read(&id("run")).unwrap();
    assert_eq!((recorded.vouched, recorded.damage), (Vouched::UpTo(2), None));
    let line = &world.lines("run")[2];
    let written = fs::read_to_string(head(&world, "run")).unwrap();
    let record = format!("{:020} {}", 2, sha256(line.as_bytes()));
    assert_eq!(written, format!("{record} {}\n", &sha256(record.as_bytes())[..16]));
    drop(journal);
    let opened = world.store.open(&id("run"), NOW).unwrap();
    assert_eq!(opened.events, events[..3], "what came after the head is fine");
    opened.journal.append(&events[3]).unwrap();
    opened.journal.sync().wait().unwrap();
    assert_eq!(world.store.read(&id("run")).unwrap().vouched, Vouched::UpTo(4));
}

#[test]
fn hashes_that_were_made_anew_are_noticed() {
    let world = world();
    synced(&world, "run", 5);
    let lines = world.lines("run");
    assert_eq!(made_anew(&lines).into_bytes(), world.bytes("run"), "it is the format");
    let mut changed = lines.clone();
    changed[3] = changed[3].replace("number 3", "number 7");
    let mut without = lines.clone();
    without.remove(3);
    for (number, line) in without.iter_mut().enumerate().skip(3) {
        *line = line.replace(&format!("\"seq\":{}", number + 1), &format!("\"seq\":{number}"));
    }
    without.push(lines[5].replace("\"seq\":5,", "\"seq\":5 ,"));
    for forged in [changed, without] {
        fs::write(world.journal("run"), made_anew(&forged)).unwrap();
        let found = damage(&world, "run");
        assert_eq!(
            found,
            Damage { line: 6, seq_before: 0, reason: Reason::OtherThanHead, later: 0 }
        );
        assert!(found.to_string().contains("hashes after it were made anew"), "{found}");
        let forked = world.store.fork(&id("run"), 2, &id("new"), NOW);
        assert!(matches!(forked, Err(JournalError::Damaged { .. })), "no way to launder it");
    }
}

#[test]
fn a_journal_that_was_cut_short_is_noticed_and_has_a_way_out() {
    let world = world();
    synced(&world, "run", 5);
    let whole = world.bytes("run");
    let lines = world.lines("run");
    let three: String = lines[..4].iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    for cut in [three.clone().into_bytes(), whole[..three.len() + 20].to_vec()] {
        fs::write(world.journal("run"), &cut).unwrap();
        let found = damage(&world, "run");
        assert_eq!(
            found,
            Damage { line: 5, seq_before: 3, reason: Reason::CutShort { head: 5 }, later: 0 }
        );
        assert_eq!(world.bytes("run"), cut, "nothing is cut off what is damaged");
    }
    let error = world.store.open(&id("run"), NOW).unwrap_err().to_string();
    assert!(error.contains("line 5 is missing: 5 events were recorded"), "{error}");
    assert!(error.contains("`convoke runs fork run --at 3`"), "{error}");
    let forked = world.store.fork(&id("run"), 3, &id("saved"), NOW).unwrap();
    assert_eq!(forked.events, notices("saved", 3));
}

/// It was told as a run in which nothing had happened yet.
#[test]
fn a_journal_that_was_emptied_is_cut_short() {
    let world = world();
    for (run, count, said) in [
        ("five", 5, "line 1 is missing: 5 events were recorded"),
        ("one", 1, "line 1 is missing: 1 event was recorded, and the journal ends before it"),
    ] {
        synced(&world, run, count);
        let whole = world.bytes(run);
        for left in [&b""[..], &whole[..20]] {
            fs::write(world.journal(run), left).unwrap();
            for error in [
                world.store.read(&id(run)).unwrap_err(),
                world.store.open(&id(run), NOW).unwrap_err(),
            ] {
                let JournalError::Damaged { damage, .. } = error else { panic!("{error:?}") };
                let reason = Reason::CutShort { head: count };
                assert_eq!(damage, Damage { line: 1, seq_before: 0, reason, later: 0 });
                assert!(damage.to_string().contains(said), "{damage}");
            }
        }
    }
    drop(world.store.create(&id("young"), NOW).unwrap());
    fs::write(world.journal("young"), "").unwrap();
    let error = world.store.read(&id("young")).unwrap_err();
    assert!(matches!(error, JournalError::Empty { .. }), "it has no head: {error}");
}

#[test]
fn a_run_that_somebody_else_removed_is_known_by_its_head() {
    let world = world();
    for run in ["kept", "removed", "deleted", "journal-deleted"] {
        synced(&world, run, 1);
    }
    assert_eq!(world.store.gone().unwrap(), []);
    world.store.remove(&id("removed")).unwrap();
    assert_eq!(world.store.gone().unwrap(), []);
    fs::remove_dir_all(world.directory("deleted")).unwrap();
    fs::remove_file(world.journal("journal-deleted")).unwrap();
    let gone = [id("deleted"), id("journal-deleted")];
    assert_eq!(world.store.gone().unwrap(), gone);
    let collection = world.store.collect(&Policy::default(), NOW).unwrap();
    assert_eq!(collection.forgotten, gone, "whoever forgets them says so");
    assert_eq!(world.store.gone().unwrap(), []);
}

/// A process that died while it removed or copied a run is no thief.
#[test]
fn a_removal_or_a_copy_that_was_interrupted_is_not_told() {
    for hidden in [".removed-run-17", ".forked-run-17"] {
        let world = world();
        synced(&world, "run", 1);
        fs::rename(world.directory("run"), world.state.path().join("runs").join(hidden)).unwrap();
        assert!(head(&world, "run").exists());
        assert_eq!(world.store.gone().unwrap(), [], "{hidden}");
        // Everything here was changed after that moment, so this is much later.
        let later = Timestamp::from_millis(i64::MAX / 2);
        let collection = world.store.collect(&Policy::default(), later).unwrap();
        assert_eq!(collection.forgotten, [], "{hidden}");
        assert!(!head(&world, "run").exists(), "{hidden}");
    }
    let world = world();
    synced(&world, "run", 1);
    let other = world.state.path().join("runs/.removed-run-2-17");
    fs::rename(world.directory("run"), other).unwrap();
    assert_eq!(world.store.gone().unwrap(), [id("run")], "that is another run");
}

#[test]
fn journals_that_were_swapped_are_noticed() {
    let world = world();
    synced(&world, "one", 3);
    synced(&world, "two", 3);
    let (one, two) = (world.lines("one"), world.lines("two"));
    fs::write(world.journal("one"), two.join("\n") + "\n").unwrap();
    let error = world.store.read(&id("one")).unwrap_err().to_string();
    assert!(error.contains("belongs to run `two`"), "{error}");
    let renamed: Vec<String> =
        one.iter().map(|line| line.replace("one", "two").replace("number", "No.")).collect();
    fs::write(world.journal("two"), made_anew(&renamed)).unwrap();
    assert_eq!(damage(&world, "two").reason, Reason::OtherThanHead);
}

#[test]
fn without_a_head_a_journal_is_read_and_said_to_be_unverified() {
    let world = world();
    synced(&world, "run", 3);
    let head = head(&world, "run");
    for broken in [None, Some("")] {
        match broken {
            None => fs::remove_file(&head).unwrap(),
            Some(text) => fs::write(&head, text).unwrap(),
        }
        let recorded = world.store.read(&id("run")).unwrap();
        assert_eq!((recorded.vouched, recorded.damage), (Vouched::NoHead, None), "{broken:?}");
        assert!(world.store.open(&id("run"), NOW).is_ok());
    }
}

#[test]
fn head_with_any_other_byte_is_damaged_and_not_absent() {
    let world = world();
    synced(&world, "run", 3);
    let head = head(&world, "run");
    let good = fs::read(&head).unwrap();
    for place in 0..good.len() {
        let mut bad = good.clone();
        bad[place] ^= 1;
        fs::write(&head, &bad).unwrap();
        let vouched = world.store.read(&id("run")).unwrap().vouched;
        assert_eq!(vouched, Vouched::DamagedHead, "byte {place}");
    }
    for bad in ["3\n", "00000000000000000003 nonsense\n", &"x".repeat(500)] {
        fs::write(&head, bad).unwrap();
        let vouched = world.store.read(&id("run")).unwrap().vouched;
        assert_eq!(vouched, Vouched::DamagedHead, "{bad:?}");
    }
}

#[test]
fn a_copy_has_a_head_of_its_own() {
    let world = world();
    synced(&world, "run", 5);
    let forked = world.store.fork(&id("run"), 3, &id("copy"), NOW).unwrap();
    forked.journal.append(&notice("copy", 4, "else")).unwrap();
    forked.journal.sync().wait().unwrap();
    assert_eq!(world.store.read(&id("copy")).unwrap().vouched, Vouched::UpTo(4));
    assert_eq!(world.store.read(&id("run")).unwrap().vouched, Vouched::UpTo(5));
}

#[test]
fn heads_go_with_their_runs() {
    let world = world();
    synced(&world, "removed", 1);
    synced(&world, "collected", 1);
    synced(&world, "kept", 1);
    world.store.remove(&id("removed")).unwrap();
    assert!(!head(&world, "removed").exists());
    fs::write(head(&world, "left-behind"), "").unwrap();
    fs::remove_dir_all(world.directory("collected")).unwrap();
    let policy = Policy { unfinished: Unfinished::Keep, ..Policy::default() };
    world.store.collect(&policy, NOW).unwrap();
    let names = fs::read_dir(world.state.path().join("heads")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["kept"]);
    let again = world.store.create(&id("kept-2"), NOW).unwrap();
    fs::write(head(&world, "kept-2"), fs::read(head(&world, "kept")).unwrap()).unwrap();
    drop(again);
    world.store.remove(&id("kept-2")).unwrap();
    fs::write(head(&world, "kept-2"), fs::read(head(&world, "kept")).unwrap()).unwrap();
    drop(world.store.create(&id("kept-2"), NOW).unwrap());
    let recorded = world.store.read(&id("kept-2")).unwrap();
    assert_eq!((recorded.vouched, recorded.damage), (Vouched::NoHead, None), "it is not its head");
}

#[test]
fn where_nothing_is_synced_the_head_is_written_at_the_end() {
    let world = world();
    let store = Store::at(world.state.path()).durability(Durability::Relaxed);
    let journal = store.create(&id("run"), NOW).unwrap();
    for event in notices("run", 3) {
        journal.append(&event).unwrap();
        journal.request_sync();
    }
    assert_eq!(store.read(&id("run")).unwrap().vouched, Vouched::NoHead);
    drop(journal);
    assert_eq!(store.read(&id("run")).unwrap().vouched, Vouched::UpTo(3));
}

#[test]
fn whoever_looks_while_a_run_works_is_not_alarmed() {
    let world = world();
    let journal = world.store.create(&id("run"), NOW).unwrap();
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            for _ in 0..300 {
                assert_eq!(world.store.read(&id("run")).unwrap().damage, None);
            }
        });
        for event in notices("run", 300) {
            journal.append(&event).unwrap();
            journal.sync().wait().unwrap();
        }
        looks.join().unwrap();
    });
}

#[test]
fn a_head_is_for_its_owner_alone() {
    let world = world();
    synced(&world, "run", 1);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&head(&world, "run")), 0o600);
    assert_eq!(mode(&world.state.path().join("heads")), 0o700);
}
