//! What other processes drop for a run.

use std::fs;
use std::os::unix::fs::symlink;

use convoke_core::Timestamp;
use convoke_journal::{Inbox, Item, JournalError, PutResult, Waiting};
use serde_json::{Map, Value, json};

use crate::support::{NOW, World, id, world};

fn item(name: &str) -> Item {
    let content: Map<String, Value> = [("text".to_owned(), json!(name))].into_iter().collect();
    Item::new(name, "message", content)
}

fn ids(waiting: &Waiting) -> Vec<&str> {
    waiting.items.iter().map(|item| item.id.as_str()).collect()
}

fn inbox() -> (World, Inbox) {
    let world = world();
    world.record("run", &[]);
    let inbox = world.store.inbox(&id("run")).unwrap();
    (world, inbox)
}

#[test]
fn items_are_taken_in_order_and_once() {
    let (_world, inbox) = inbox();
    assert_eq!(inbox.take().unwrap(), Waiting::default());
    let later = Timestamp::from_millis(NOW.as_millis() + 1);
    inbox.put(&item("third"), later).unwrap();
    inbox.put(&item("first"), NOW).unwrap();
    inbox.put(&item("second"), NOW).unwrap();
    let taken = inbox.take().unwrap();
    assert_eq!(ids(&taken), ["first", "second", "third"]);
    assert_eq!(taken.items[0].kind, "message");
    assert_eq!(taken.items[0].content["text"], json!("first"));
    assert_eq!(inbox.take().unwrap(), Waiting::default());
}

#[test]
fn an_item_stays_until_it_is_done() {
    let (_world, inbox) = inbox();
    inbox.put(&item("a"), NOW).unwrap();
    inbox.put(&item("b"), NOW).unwrap();
    let waiting = inbox.waiting().unwrap();
    inbox.done(&waiting.items[0]).unwrap();
    inbox.done(&waiting.items[0]).unwrap();
    assert_eq!(ids(&inbox.waiting().unwrap()), ["b"]);
}

#[test]
fn junk_is_set_aside_and_strange_files_are_passed_over() {
    let (world, inbox) = inbox();
    inbox.put(&item("good"), NOW).unwrap();
    let directory = world.directory("run").join("inbox");
    fs::write(directory.join("1.json"), "{ not json").unwrap();
    fs::write(directory.join("2.json"), r#"{"id":"x"}"#).unwrap();
    fs::write(directory.join("3.json"), vec![b' '; (1 << 20) + 1]).unwrap();
    fs::write(directory.join(".half-written.json"), "{").unwrap();
    fs::create_dir(directory.join("4.json")).unwrap();
    let outside = world.state.path().join("outside.json");
    fs::write(&outside, r#"{"id":"evil","kind":"cancel"}"#).unwrap();
    symlink(&outside, directory.join("5.json")).unwrap();

    let taken = inbox.take().unwrap();
    assert_eq!(ids(&taken), ["good"]);
    let aside: Vec<_> = taken.set_aside.iter().map(|one| one.path.clone()).collect();
    assert_eq!(aside, [directory.join("1.junk"), directory.join("2.junk")]);
    assert!(taken.set_aside[1].problem.contains("kind"), "{:?}", taken.set_aside[1]);
    assert!(aside.iter().all(|path| path.exists()));
    assert_eq!(inbox.take().unwrap(), Waiting::default(), "it is said once");
    assert!(outside.exists() && directory.join("5.json").exists());
}

#[test]
fn nothing_can_be_told_to_a_run_that_is_not_there() {
    let (world, _) = inbox();
    let inbox = world.store.inbox(&id("none")).unwrap();
    let error = inbox.put(&item("x"), NOW).unwrap_err();
    assert!(matches!(error, JournalError::NotFound { .. }), "{error:?}");
    assert_eq!(inbox.take().unwrap(), Waiting::default());
    assert!(!world.directory("none").exists());
}

#[test]
fn put_once_accepts_one_of_several_items_of_the_same_id() {
    let (world, _) = inbox();
    for round in 0..50 {
        let put = |kind: &str| {
            let item = Item::new(format!("question-{round}"), kind, Map::new());
            world.store.inbox(&id("run")).unwrap().put_once(&item).unwrap()
        };
        let results = std::thread::scope(|scope| {
            let both = ["yes", "no"].map(|kind| scope.spawn(move || (kind, put(kind))));
            both.map(|one| one.join().unwrap())
        });
        let inbox = world.store.inbox(&id("run")).unwrap();
        let waiting = inbox.waiting().unwrap().items;
        let [only] = waiting.as_slice() else { panic!("{waiting:?}") };
        for (kind, result) in results {
            match result {
                PutResult::Put(_) => assert_eq!(only.kind, kind),
                PutResult::Taken(other) => {
                    assert_ne!(only.kind, kind);
                    assert_eq!(other.unwrap().kind, only.kind);
                }
            }
        }
        inbox.done(only).unwrap();
    }
}
