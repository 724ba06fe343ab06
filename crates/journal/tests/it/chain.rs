//! A change anywhere is noticed, and the line is named.

use std::fs;

use convoke_journal::{Damage, Journal, JournalError, Reason};
use sha2::{Digest, Sha256};

use crate::support::{NOW, World, id, newlines, notice, notices, world};

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[test]
fn anybody_can_recompute_the_chain() {
    let world = world();
    let events = notices("run", 20);
    world.record("run", &events[..10]);
    let opened = world.store.open(&id("run"), NOW).unwrap();
    for event in &events[10..] {
        opened.journal.append(event).unwrap();
    }

    let lines = world.lines("run");
    assert_eq!(lines.len(), 21);
    assert!(lines[0].starts_with(r#"{"journal":1,"run":"run","created":1772368496000,"#));
    for (pair, event) in lines.windows(2).zip(&events) {
        let start = format!(r#"{{"prev":"{}","v":1,"seq":"#, sha256(pair[0].as_bytes()));
        assert!(pair[1].starts_with(&start), "{}", pair[1]);
        let (content, sum) = pair[1].rsplit_once(r#","sum":""#).unwrap();
        assert_eq!(sum.trim_end_matches("\"}"), &sha256(content.as_bytes())[..16]);
        // Between the two, the event is as it is everywhere else.
        let json = serde_json::to_string(event).unwrap();
        let inner = json.trim_start_matches('{').trim_end_matches('}');
        assert!(content.contains(inner), "{content}");
    }
}

/// Opens a journal that has these bytes, after it was recorded with three events.
fn opened_as(world: &World, bytes: &[u8]) -> Result<usize, JournalError> {
    fs::write(world.journal("run"), bytes).unwrap();
    let read = world.store.read(&id("run"));
    let opened = world.store.open(&id("run"), NOW);
    match (read, &opened) {
        (Ok(read), Ok(opened)) => {
            assert_eq!((read.events.len(), read.damage), (opened.events.len(), None));
        }
        (Ok(read), Err(JournalError::Damaged { damage, .. })) => {
            assert_eq!(read.damage.as_ref(), Some(damage));
            assert_eq!(read.events.len() as u64, damage.seq_before + damage.later);
            assert_eq!(read.intact().len() as u64, damage.seq_before);
        }
        (Err(read), Err(opened)) => assert_eq!(read.to_string(), opened.to_string()),
        other => panic!("{other:?}"),
    }
    if opened.is_err() {
        assert_eq!(fs::read(world.journal("run")).unwrap(), bytes, "nothing is written");
    }
    opened.map(|opened| opened.repaired.map_or(usize::MAX, |_| opened.events.len()))
}

#[test]
fn a_flipped_byte_anywhere_is_noticed() {
    let world = world();
    let events = notices("run", 3);
    world.record("run", &events);
    let good = world.bytes("run");
    let last_line = good[..good.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for offset in 0..good.len() {
        for mask in [0x01, 0x20, 0x80] {
            let mut bytes = good.clone();
            bytes[offset] ^= mask;
            let line = newlines(&bytes[..offset]) as u64 + 1;
            match opened_as(&world, &bytes) {
                // What is not JSON at the very end counts as torn, and that is said.
                Ok(2) => assert!(offset >= last_line, "{offset}"),
                Ok(1) => assert_eq!(offset, last_line - 1, "the newline between the last two"),
                Ok(kept) => panic!("{offset}: {kept}"),
                Err(JournalError::Damaged { damage, .. }) => {
                    assert_eq!(damage.line, line, "{offset}");
                    assert_eq!(damage.seq_before, line.saturating_sub(2));
                }
                Err(JournalError::Newer { .. } | JournalError::Empty { .. }) => {
                    assert_eq!(line, 1, "{offset}");
                }
                Err(error) => panic!("{offset}: {error:?}"),
            }
        }
    }
}

#[test]
fn lines_taken_out_or_swapped_are_noticed() {
    let world = world();
    world.record("run", &notices("run", 4));
    let lines = world.lines("run");
    let with = |order: &[usize]| -> Vec<u8> {
        order.iter().flat_map(|index| format!("{}\n", lines[*index]).into_bytes()).collect()
    };
    for (order, at) in [(vec![0, 1, 3, 4], 3), (vec![0, 2, 1, 3, 4], 2), (vec![0, 1, 1, 2], 3)] {
        let error = opened_as(&world, &with(&order)).unwrap_err();
        let JournalError::Damaged { damage, .. } = error else { panic!("{error:?}") };
        assert_eq!((damage.line, damage.seq_before), (at, at - 2), "{order:?}");
        assert_eq!(damage.reason, Reason::BrokenChain, "{order:?}");
    }
}

#[test]
fn garbage_in_the_middle_is_damage_with_a_way_out() {
    let world = world();
    world.record("run", &notices("run", 4));
    let mut lines = world.lines("run");
    lines[3] = "\0\0\0".into();
    let bytes = lines.join("\n") + "\n";
    let error = opened_as(&world, bytes.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the journal of run `run` is damaged: line 4 is not JSON; events 1 to 2 are intact; \
         go on from there with `convoke runs fork run --at 2`; 1 event after it can be read, and others \
         may be missing"
    );
    let forked = world.store.fork(&id("run"), 2, &id("saved"), NOW).unwrap();
    assert_eq!(forked.events, notices("saved", 2));
    assert!(matches!(
        world.store.fork(&id("run"), 3, &id("more"), NOW),
        Err(JournalError::Damaged { .. })
    ));
}

/// Writes a journal whose chain and checksums are right, whatever its lines say.
fn forge(header: &str, events: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut prev = String::new();
    for (index, line) in std::iter::once(&header).chain(events).enumerate() {
        let inner = &line[1..line.len() - 1];
        let content = match index {
            0 => format!("{{{inner}"),
            _ => format!("{{\"prev\":\"{prev}\",{inner}"),
        };
        let sum = &sha256(content.as_bytes())[..16];
        let line = format!("{content},\"sum\":\"{sum}\"}}");
        prev = sha256(line.as_bytes());
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

const HEADER: &str = r#"{"journal":1,"run":"run","created":1,"program":"convoke"}"#;
const GOOD: &str =
    r#"{"v":1,"seq":1,"ts":1,"run":"run","agent":"main","type":"notice","data":{"message":"x"}}"#;

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let world = world();
    world.record("run", &[]);
    let newer = HEADER.replace("\"journal\":1", "\"journal\":2");
    for bytes in [forge(&newer, &[]), b"{\"journal\":2,\"anything\":[]}\nbinary\0\n".to_vec()] {
        let error = opened_as(&world, &bytes).unwrap_err();
        assert!(matches!(error, JournalError::Newer { found: 2, .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("format 2") && text.contains("up to 1") && text.contains("update"));
        assert!(world.store.list().unwrap()[0].problem.as_ref().unwrap().contains("format 2"));
    }
}

#[test]
fn what_this_program_does_not_know_is_said() {
    let world = world();
    world.record("run", &[]);
    let second = GOOD.replace("\"seq\":1", "\"seq\":2");
    for (replace, with, reason) in [
        ("\"notice\"", "\"teleport\"", "unknown variant `teleport`"),
        ("\"message\"", "\"massage\"", "missing field `message`"),
    ] {
        let unknown = second.replace(replace, with);
        let error = opened_as(&world, &forge(HEADER, &[GOOD, &unknown])).unwrap_err().to_string();
        assert!(error.contains("line 3 cannot be understood"), "{error}");
        assert!(error.contains(reason) && error.contains("newer program?"), "{error}");
        assert!(error.contains("event 1 is intact"), "{error}");
    }
}

#[test]
fn gaps_and_other_runs_are_damage() {
    let world = world();
    world.record("run", &[]);
    for (replace, with, reason) in [
        ("\"seq\":1", "\"seq\":2", Reason::Gap { expected: 1, found: 2 }),
        ("\"seq\":1", "\"after\":0,\"index\":0", Reason::Gap { expected: 1, found: 0 }),
        ("\"run\":\"run\"", "\"run\":\"other\"", Reason::OtherRun { found: id("other") }),
    ] {
        let error = opened_as(&world, &forge(HEADER, &[&GOOD.replace(replace, with)])).unwrap_err();
        let JournalError::Damaged { damage, .. } = error else { panic!("{error:?}") };
        assert_eq!(damage, Damage { line: 2, seq_before: 0, reason, later: 0 });
    }
    let other = HEADER.replace("\"run\":\"run\"", "\"run\":\"other\"");
    let error = opened_as(&world, &forge(&other, &[GOOD])).unwrap_err();
    assert!(error.to_string().contains("belongs to run `other`"), "{error}");
}

#[test]
fn the_forged_journal_is_fine_otherwise() {
    let world = world();
    world.record("run", &[]);
    fs::write(world.journal("run"), forge(HEADER, &[GOOD])).unwrap();
    let opened = world.store.open(&id("run"), NOW).unwrap();
    let mut expected = notice("run", 1, "x");
    expected.ts = convoke_core::Timestamp::from_millis(1);
    assert_eq!(opened.events, [expected]);
}
