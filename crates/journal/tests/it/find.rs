//! Runs by what a person types.

use std::fs;
use std::path::Path;

use convoke_core::{EventBody, RunSettings, TaskId, Timestamp};
use convoke_journal::{FindError, Newest, Scope};
use serde_json::json;

use crate::support::{World, event, id, world};

fn runs() -> World {
    let world = world();
    for run in ["2026-03-01-apple", "2026-03-01-apricot", "2026-03-02-apple", "2026-03-02"] {
        world.record(run, &[]);
    }
    fs::create_dir(world.directory(".removed-2026-04-01")).unwrap();
    world
}

#[test]
fn an_id_or_the_only_part_of_one_is_enough() {
    let world = runs();
    for (wanted, found) in [
        ("2026-03-01-apple", "2026-03-01-apple"),
        ("apricot", "2026-03-01-apricot"),
        ("02-app", "2026-03-02-apple"),
        // An exact id wins over others that it is part of.
        ("2026-03-02", "2026-03-02"),
    ] {
        assert_eq!(world.store.find(wanted).unwrap(), id(found));
    }
}

#[test]
fn newest_run_is_one_of_this_directory_unless_all_are_meant() {
    let world = world();
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (here, there) = (here.path().canonicalize().unwrap(), there.path().canonicalize().unwrap());
    let link = world.state.path().join("link");
    std::os::unix::fs::symlink(&here, &link).unwrap();
    let begun = |run: &str, late: u64, origin: serde_json::Value| {
        let started = EventBody::RunStarted {
            task: TaskId::new("task"),
            model: String::new(),
            prompt: String::new(),
            attachments: Vec::new(),
            history: Vec::new(),
            system: "".into(),
            tools: [].into(),
            settings: RunSettings::default(),
            origin,
        };
        let mut event = event(run, 1, started);
        event.ts = Timestamp::from_millis(i64::try_from(late).unwrap());
        world.record(run, &[event]);
    };
    begun("a", 10, json!({ "workingDirectory": here }));
    begun("b", 20, json!({ "workingDirectory": there }));
    begun("c", 15, json!({ "workingDirectory": link }));
    begun("d", 30, json!({ "workingDirectory": here, "served": true }));
    begun("e", 40, json!(null));
    let newest = |scope: Scope<'_>| {
        let Newest { run, elsewhere } = world.store.newest(scope, None).unwrap();
        (run.map(|run| run.run.to_string()).unwrap_or_default(), elsewhere)
    };
    assert_eq!(newest(Scope::Directory(&here)), ("c".to_owned(), 2));
    assert_eq!(newest(Scope::Directory(&there)), ("b".to_owned(), 3));
    assert_eq!(newest(Scope::Directory(Path::new("/nowhere"))), (String::new(), 4));
    assert_eq!(newest(Scope::Everywhere), ("e".to_owned(), 0));
}

#[test]
fn what_could_be_several_is_said() {
    let error = runs().store.find("apple").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`apple` is part of 2 ids: `2026-03-02-apple`, `2026-03-01-apple`; type more of it"
    );
    assert!(matches!(error, FindError::Ambiguous { candidates, .. } if candidates.len() == 2));
}

#[test]
fn what_is_not_there_is_said_with_what_was_meant() {
    let world = runs();
    let error = world.store.find("2026-03-01-aprikot").unwrap_err();
    assert!(error.to_string().contains("did you mean `2026-03-01-apricot`"), "{error}");
    for wanted in ["", "zzz", "../x", "removed"] {
        let error = world.store.find(wanted).unwrap_err();
        assert!(matches!(error, FindError::None { .. }), "{wanted}: {error:?}");
    }
}
