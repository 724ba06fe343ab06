//! Long texts beside the journal.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use convoke_core::{Event, EventBody, Part};
use convoke_journal::{Journal, JournalError, Reason};
use serde_json::{Value, json};

use crate::support::{NOW, World, event, id, notice, notices, world};

fn long(letter: &str) -> String {
    letter.repeat(40_000)
}

fn completed(result: Value) -> Event {
    let content = vec![Part::text("short"), Part::text(long("c"))];
    event(
        "run",
        1,
        EventBody::ToolCallCompleted {
            tool_name: "t".into(),
            result: Arc::new(result),
            content,
            display: None,
            duration_ms: std::time::Duration::from_millis(3).into(),
            files: Vec::new(),
        },
    )
}

fn blobs(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.directory("run").join("blobs")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn long_texts_leave_the_line_and_come_back_exactly() {
    let world = world();
    let odd =
        json!({ "a/b": { "m~n": [1, long("é\n\"")] }, "": long("z"), "n": 0.1, "short": "s" });
    let event = completed(odd);
    world.record("run", std::slice::from_ref(&event));
    let line = world.lines("run").pop().unwrap();
    assert!(line.len() < 1500, "{}", line.len());
    let json: Value = serde_json::from_str(&line).unwrap();
    let moved = json["blobs"].as_object().unwrap();
    let pointers: Vec<&str> = moved.keys().map(String::as_str).collect();
    assert_eq!(pointers, ["/data/content/1/text", "/data/result/", "/data/result/a~1b/m~0n/1"]);
    for (pointer, hash) in moved {
        assert_eq!(json.pointer(pointer), Some(&json!("")));
        assert!(world.directory("run").join("blobs").join(hash.as_str().unwrap()).exists());
    }
    let keys: Vec<&str> = line.split("\"blobs\"").last().unwrap().split("},\"v\":1,").collect();
    assert_eq!(keys.len(), 2, "the fields of the event keep their order");
    assert_eq!(world.store.read(&id("run")).unwrap().events, std::slice::from_ref(&event));
    assert_eq!(world.store.open(&id("run"), NOW).unwrap().events, [event]);
}

#[test]
fn a_line_is_left_alone_unless_it_is_long() {
    let world = world();
    let text = "x".repeat(31 * 1024);
    world.record("run", &[notice("run", 1, &text)]);
    assert!(!world.directory("run").join("blobs").exists());
    assert!(world.lines("run")[1].contains(&text));
}

#[test]
fn the_same_text_is_stored_once() {
    let world = world();
    let events: Vec<Event> = (1..=5).map(|seq| notice("run", seq, &long("x"))).collect();
    world.record("run", &events);
    assert_eq!(blobs(&world).len(), 1);
    let bytes = world.bytes("run").len() as u64 + 40_000;
    assert_eq!(world.store.list().unwrap()[0].bytes, bytes);
    assert_eq!(world.store.read(&id("run")).unwrap().events, events);
}

/// Returns why the text of the second event is lost. Everything else is there, and the run can go on.
fn reason(world: &World) -> Reason {
    let opened = world.store.open(&id("run"), NOW).unwrap();
    let [lost] = opened.lost.as_slice() else { panic!("{opened:?}") };
    assert_eq!((lost.line, lost.seq_before), (3, 1));
    let [first, second, third] = opened.events.as_slice() else { panic!("{opened:?}") };
    assert_eq!(*third, notice("run", 3, "y"));
    let EventBody::Notice { message } = &second.body else { panic!("{opened:?}") };
    assert!(message.starts_with("[lost: "), "{message}");
    let recorded = world.store.read(&id("run")).unwrap();
    assert_eq!((recorded.damage.as_ref(), recorded.lost.as_slice()), (None, &opened.lost[..]));
    assert_eq!(recorded.events, opened.events);
    assert_eq!(recorded.intact(), std::slice::from_ref(first));
    let problem = recorded.problem(&id("run")).unwrap();
    assert!(matches!(problem, JournalError::TextLost { others: 0, .. }), "{problem:?}");
    lost.reason.clone()
}

#[test]
fn missing_or_altered_blob_loses_its_text_and_nothing_else() {
    let world = world();
    let events = [notice("run", 1, "x"), notice("run", 2, &long("x")), notice("run", 3, "y")];
    world.record("run", &events);
    let [blob] = blobs(&world).try_into().unwrap();
    let hash = blob.file_name().unwrap().to_str().unwrap().to_owned();
    let pointer = "/data/message".to_owned();
    let good = fs::read(&blob).unwrap();
    for bad in [long("y").into_bytes(), Vec::new(), good[1..].to_vec(), vec![0xff; 40_000]] {
        fs::write(&blob, bad).unwrap();
        let altered = Reason::AlteredBlob { pointer: pointer.clone(), hash: hash.clone() };
        assert_eq!(reason(&world), altered);
    }
    fs::remove_file(&blob).unwrap();
    let missing = reason(&world);
    assert_eq!(missing, Reason::MissingBlob { pointer, hash: hash.clone() });
    assert!(missing.to_string().contains(&hash) && missing.to_string().contains("/data/message"));
    fs::create_dir(&blob).unwrap();
    assert!(matches!(reason(&world), Reason::UnreadableBlob { .. }));
    fs::remove_dir(&blob).unwrap();
    fs::write(&blob, good).unwrap();
    assert_eq!(world.store.open(&id("run"), NOW).unwrap().events, events);
}

#[test]
fn lines_after_a_damaged_one_are_read_and_do_not_count_as_intact() {
    let world = world();
    let events = notices("run", 9);
    world.record("run", &events);
    let mut lines = world.lines("run");
    for damaged in ["garbage".to_owned(), lines[4].replace("number", "NUMBER"), String::new()] {
        lines[4] = damaged;
        fs::write(world.journal("run"), lines.join("\n") + "\n").unwrap();
        let recorded = world.store.read(&id("run")).unwrap();
        let damage = recorded.damage.clone().unwrap();
        assert_eq!((damage.line, damage.seq_before, damage.later), (5, 3, 5));
        assert_eq!(recorded.intact(), &events[..3]);
        assert_eq!(recorded.events, [&events[..3], &events[4..]].concat());
        let error = world.store.open(&id("run"), NOW).unwrap_err();
        assert!(matches!(error, JournalError::Damaged { .. }), "{error:?}");
    }
}

#[test]
fn an_altered_blob_is_not_trusted_for_a_new_event() {
    let world = world();
    let journal = world.store.create(&id("run"), NOW).unwrap();
    journal.append(&notice("run", 1, &long("x"))).unwrap();
    let [blob] = blobs(&world).try_into().unwrap();
    // A machine that lost power may leave the name without the content.
    fs::write(&blob, "").unwrap();
    journal.append(&notice("run", 2, &long("x"))).unwrap();
    assert_eq!(fs::read_to_string(&blob).unwrap(), long("x"));
    assert_eq!(world.store.read(&id("run")).unwrap().events.len(), 2);
}
