//! Lists of runs, with and without their cache.

use std::fs;
use std::sync::Arc;

use convoke_core::{
    CallId, Cause, Event, EventBody, Kind, RunSettings, Status, TaskId, Timestamp, Usage,
};
use convoke_journal::{Condition, Journal, Summary};

use crate::support::{NOW, World, event, id, world};

fn started(run: &str, prompt: &str, system: &str) -> Event {
    let body = EventBody::RunStarted {
        task: TaskId::new("t"),
        model: "some-model".into(),
        prompt: prompt.into(),
        attachments: Vec::new(),
        history: Vec::new(),
        system: system.into(),
        tools: Arc::from([]),
        settings: RunSettings::default(),
        origin: serde_json::Value::Null,
    };
    event(run, 1, body)
}

fn ended(run: &str, seq: u64, cause: Cause) -> Event {
    let usage = Usage { input_tokens: 12, output_tokens: 3, ..Usage::default() };
    event(run, seq, EventBody::RunEnded { outcome: cause.into(), answer: None, usage })
}

fn resumed(run: &str, seq: u64) -> Event {
    let body = EventBody::RunResumed {
        model: None,
        settings: None,
        lost: Usage::default(),
        anything_else: false,
        redirected: false,
        again: Vec::new(),
        origin: serde_json::Value::Null,
    };
    event(run, seq, body)
}

fn tool(run: &str, seq: u64) -> Event {
    let (tool_name, description) = ("t".into(), String::new());
    let effects = convoke_core::Effects::default();
    let repeat = convoke_core::Repeat::Unsafe;
    event(run, seq, EventBody::ToolCallStarted { tool_name, description, effects, repeat })
}

fn turn(run: &str, seq: u64, turn: u32) -> Event {
    event(run, seq, EventBody::TurnStarted { turn })
}

fn in_child(mut event: Event, root: &str) -> Event {
    event.run = id("child");
    event.parent = Some(id(root));
    event
}

fn only(world: &World) -> Summary {
    let [summary] = world.store.list().unwrap().try_into().unwrap();
    summary
}

#[test]
fn a_summary_says_what_happened() {
    let world = world();
    let journal = world.store.create(&id("run"), NOW).unwrap();
    let append = |event: Event| journal.append(&event).unwrap();
    append(started("run", "Fix\n  the bug", "be good"));
    append(turn("run", 2, 1));
    append(tool("run", 3));
    append(in_child(started("run", "a part of it", ""), "run").at(4));
    append(in_child(turn("run", 5, 7), "run"));
    append(in_child(tool("run", 6), "run"));
    append(in_child(ended("run", 7, Cause::Error), "run"));
    append(turn("run", 8, 2));
    let running = only(&world);
    assert_eq!(running.condition, Condition::Running);
    assert_eq!((running.turns, running.tool_calls, running.usage), (2, 2, None));
    append(ended("run", 9, Cause::MaxTurns));
    assert_eq!(only(&world).condition, Condition::Running, "its process has not let go yet");
    drop(journal);

    let summary = only(&world);
    let ended_with = Condition::Ended { status: Status::Limited, cause: Cause::MaxTurns };
    assert_eq!(summary.condition, ended_with);
    assert_eq!((summary.prompt.as_str(), summary.model.as_str()), ("Fix the bug", "some-model"));
    assert_eq!((summary.events, summary.turns, summary.tool_calls), (9, 2, 2));
    assert_eq!(summary.usage.unwrap().input_tokens, 12);
    assert_eq!(summary.created, NOW);
    assert_eq!(summary.last_activity, Timestamp::from_millis(NOW.as_millis() + 9));
    assert_eq!(summary.bytes, world.bytes("run").len() as u64);

    // Resumed: it is not ended any more.
    let opened = world.store.open(&id("run"), NOW).unwrap();
    opened.journal.append(&resumed("run", 10)).unwrap();
    drop(opened);
    assert_eq!(only(&world).condition, Condition::Interrupted);

    fs::remove_file(world.state.path().join("index")).unwrap();
    let anew = only(&world);
    assert_eq!((anew.events, anew.turns, anew.tool_calls), (10, 2, 2));
}

fn about(call: &str, mut event: Event) -> Event {
    event.call = Some(CallId::new(call));
    event
}

fn asked(seq: u64, call: &str) -> Event {
    let body = EventBody::ApprovalAsked {
        tool_name: "t".into(),
        kind: Kind::Execute,
        description: "does it".into(),
        arguments: Arc::new(serde_json::json!({})),
        preview: None,
        reason: "it is asked about".into(),
        rules: Vec::new(),
        until: None,
        fingerprint: "f".into(),
    };
    about(call, event("run", seq, body))
}

fn answered(seq: u64, call: &str) -> Event {
    let body = serde_json::json!({ "type": "approval_answered", "data": { "toolName": "t", "approved": true } });
    about(call, event("run", seq, serde_json::from_value(body).unwrap()))
}

/// What a call asked for while it ran is gone with the process that ran it.
#[test]
fn what_a_lost_call_asked_for_is_not_open_any_more() {
    let world = world();
    let journal = world.store.create(&id("run"), NOW).unwrap();
    let append = |event: Event| journal.append(&event).unwrap();
    let inquired = serde_json::json!({
        "type": "inquiry_asked",
        "data": {
            "toolName": "t", "who": "t", "message": "Which?", "reason": "it has to know",
            "wanted": { "mode": "form", "schema": {} }
        }
    });
    let inquired = |seq| {
        let body = serde_json::from_value(inquired.clone()).unwrap();
        about("c", event("run", seq, body))
    };
    append(started("run", "hello", ""));
    append(asked(2, "a"));
    append(inquired(3));
    append(in_child(inquired(4), "run"));
    assert_eq!(only(&world).open_questions, 3);
    let resumed = |seq| {
        let body = serde_json::json!({ "type": "run_resumed", "data": {} });
        event("run", seq, serde_json::from_value(body).unwrap())
    };
    let open = || {
        let events = world.store.read(&id("run")).unwrap().events;
        let open = convoke_journal::open_questions(&events).len();
        assert_eq!(only(&world).open_questions, open, "they agree");
        open
    };
    append(in_child(resumed(5), "run"));
    assert_eq!(open(), 2, "an agent goes on alone");
    append(in_child(inquired(6), "run"));
    append(resumed(7));
    assert_eq!(open(), 1, "nobody is left who works on any of it");
}

#[test]
fn a_run_that_waits_for_an_answer_says_so() {
    let world = world();
    let journal = world.store.create(&id("run"), NOW).unwrap();
    let append = |event: Event| journal.append(&event).unwrap();
    let said = || (only(&world).condition, only(&world).open_questions);
    append(started("run", "hello", ""));
    assert_eq!(said(), (Condition::Running, 0));
    append(asked(2, "a"));
    append(asked(3, "b"));
    // The same call of another run is another question.
    append(in_child(asked(4, "a"), "run"));
    assert_eq!(said(), (Condition::Waiting, 3));
    append(asked(5, "a"));
    assert_eq!(said(), (Condition::Waiting, 3), "a question that is asked again is the same");
    append(answered(6, "a"));
    append(in_child(answered(7, "b"), "run"));
    let denied = serde_json::json!({
        "type": "tool_call_denied",
        "data": {
            "toolName": "t",
            "error": { "kind": "permission", "message": "no" },
            "durationMs": 1
        }
    });
    append(about("b", event("run", 8, serde_json::from_value(denied).unwrap())));
    assert_eq!(said(), (Condition::Waiting, 1));
    let events = world.store.read(&id("run")).unwrap().events;
    assert_eq!(convoke_journal::open_questions(&events).len(), 1, "they agree");
    drop(journal);
    assert_eq!(said(), (Condition::Interrupted, 1), "nobody works on it, and it is still open");
}

#[test]
fn a_prompt_is_found_wherever_it_is_kept() {
    let world = world();
    world.record("prompt", &[started("prompt", &"long prompt ".repeat(5000), "")]);
    world.record("system", &[started("system", "short", &"x".repeat(100_000))]);
    let list = world.store.list().unwrap();
    assert_eq!((list[0].run.as_str(), list[0].prompt.as_str()), ("system", "short"));
    assert!(list[1].prompt.starts_with("long prompt long prompt"));
    assert_eq!(list[1].prompt.chars().count(), 200);
}

/// codex#46269, #20213: no start depends on a cache, whatever became of it.
#[test]
fn a_thousand_runs_are_the_same_with_any_cache() {
    let world = world();
    for number in 0..1000 {
        let run = format!("run-{number:04}");
        let events = [started(&run, &run, ""), ended(&run, 2, Cause::Goal)];
        world.record(&run, &events[..=number % 2]);
    }
    let index = world.state.path().join("index");
    assert!(!index.exists(), "only a list makes it");
    let first = world.store.list().unwrap();
    assert_eq!(first.len(), 1000);
    assert_eq!((first[0].run.as_str(), first[0].prompt.as_str()), ("run-0999", "run-0999"));
    assert_eq!(first.iter().filter(|run| run.condition == Condition::Interrupted).count(), 500);
    let good = fs::read(&index).unwrap();
    assert_eq!(world.store.list().unwrap(), first);
    assert_eq!(fs::read(&index).unwrap(), good, "nothing changed, nothing is written");

    for garbage in [b"".to_vec(), b"\0garbage".to_vec(), good[..good.len() / 2].to_vec()] {
        fs::write(&index, garbage).unwrap();
        assert_eq!(world.store.list().unwrap(), first);
    }
    let other_form = String::from_utf8(good.clone()).unwrap().replace("\"form\":2", "\"form\":3");
    fs::write(&index, other_form).unwrap();
    assert_eq!(world.store.list().unwrap(), first);
    fs::remove_file(&index).unwrap();
    assert_eq!(world.store.list().unwrap(), first);
    // A bit that flipped anywhere changes nothing that is listed.
    for place in (0..good.len()).step_by(good.len() / 50) {
        let mut flipped = good.clone();
        flipped[place] ^= 1;
        fs::write(&index, flipped).unwrap();
        assert_eq!(world.store.list().unwrap(), first, "byte {place}");
    }

    world.store.remove(&id("run-0500")).unwrap();
    assert_eq!(world.store.list().unwrap().len(), 999);
    assert!(!String::from_utf8(fs::read(&index).unwrap()).unwrap().contains("run-0500"));
}

#[test]
fn a_run_made_anew_under_an_old_id_is_not_mixed_up() {
    let world = world();
    world.record("run", &[started("run", "old", "")]);
    assert_eq!(only(&world).prompt, "old");
    world.store.remove(&id("run")).unwrap();
    world.record("run", &[started("run", "new and longer", ""), turn("run", 2, 1)]);
    let summary = only(&world);
    assert_eq!((summary.prompt.as_str(), summary.turns), ("new and longer", 1));
}

#[test]
fn a_damaged_run_is_listed_with_what_is_known() {
    let world = world();
    world.record("run", &[started("run", "hello", ""), turn("run", 2, 1), turn("run", 3, 2)]);
    let mut lines = world.lines("run");
    lines[2] = "garbage".into();
    fs::write(world.journal("run"), lines.join("\n") + "\n").unwrap();
    let summary = only(&world);
    assert_eq!((summary.prompt.as_str(), summary.events), ("hello", 1));
    assert_eq!(summary.problem.as_deref(), Some("line 3 of the journal cannot be read"));
    assert_eq!(summary.condition, Condition::Interrupted);
}

#[test]
fn a_run_that_cannot_be_read_does_not_hide_the_others() {
    let world = world();
    world.record("good", &[started("good", "hello", "")]);
    fs::create_dir_all(world.journal("strange")).unwrap();
    let list = world.store.list().unwrap();
    assert_eq!((list[0].run.as_str(), &list[0].problem), ("good", &None));
    assert_eq!(list[1].run.as_str(), "strange");
    assert!(list[1].problem.as_ref().unwrap().contains("cannot be read"));
}

trait At {
    fn at(self, seq: u64) -> Self;
}

impl At for Event {
    fn at(mut self, seq: u64) -> Self {
        self.position = convoke_core::Position::Durable { seq };
        self
    }
}

/// A pipe was waited for, for ever.
#[test]
fn what_is_no_file_is_named_and_not_waited_for() {
    let world = world();
    world.record("whole", &[started("whole", "Go", "")]);
    for name in ["pipe", "directory", "socket", "device"] {
        fs::create_dir(world.directory(name)).unwrap();
    }
    make_pipe(&world.journal("pipe"));
    fs::create_dir(world.journal("directory")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.journal("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", world.journal("device")).unwrap();
    let listed = world.store.list().unwrap();
    for (name, what) in [
        ("pipe", "a named pipe"),
        ("directory", "a directory"),
        ("socket", "a socket"),
        ("device", "a device"),
    ] {
        let summary = listed.iter().find(|summary| summary.run == id(name)).unwrap();
        let problem = format!("the journal cannot be read (it is {what}, not a file)");
        assert_eq!(summary.problem, Some(problem));
        for error in [
            world.store.read(&id(name)).map(drop).unwrap_err(),
            world.store.open(&id(name), NOW).map(drop).unwrap_err(),
            world.store.remove(&id(name)).unwrap_err(),
        ] {
            let source = std::error::Error::source(&error).unwrap().to_string();
            assert_eq!(source, format!("it is {what}, not a file"), "{error}");
        }
    }
    assert_eq!(listed.len(), 5);
    // Beside a journal, too.
    let whole = world.directory("whole");
    fs::remove_file(whole.join("lock")).unwrap_or_default();
    make_pipe(&whole.join("lock"));
    let head = world.state.path().join("heads/whole");
    fs::create_dir_all(head.parent().unwrap()).unwrap();
    fs::remove_file(&head).unwrap_or_default();
    make_pipe(&head);
    fs::remove_file(world.state.path().join("index")).unwrap();
    make_pipe(&world.state.path().join("index"));
    assert_eq!(world.store.list().unwrap().len(), 5);
    drop(world.store.open(&id("whole"), NOW).unwrap());
}

fn make_pipe(path: &std::path::Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn summary_with_events_behind_the_end_stays_ended_until_it_is_resumed() {
    let world = world();
    let server = |seq| {
        let (server, state) = ("files".to_owned(), "starting".to_owned());
        event("run", seq, EventBody::McpServerState { server, state, reason: None })
    };
    let journal = world.store.create(&id("run"), NOW).unwrap();
    for event in [started("run", "Fix it", ""), ended("run", 2, Cause::Goal)] {
        journal.append(&event).unwrap();
    }
    let late = [
        server(3),
        event("run", 4, EventBody::Warning { message: "late".into() }),
        event("run", 5, EventBody::Usage(Usage::default())),
        in_child(ended("run", 6, Cause::Goal), "run"),
    ];
    for event in late {
        journal.append(&event).unwrap();
    }
    drop(journal);
    let done = Condition::Ended { status: Status::Completed, cause: Cause::Goal };
    assert_eq!(only(&world).condition, done);
    assert_eq!(only(&world).condition, done, "from the cache as well");

    let opened = world.store.open(&id("run"), NOW).unwrap();
    opened.journal.append(&resumed("run", 7)).unwrap();
    drop(opened);
    assert_eq!(only(&world).condition, Condition::Interrupted);
}
