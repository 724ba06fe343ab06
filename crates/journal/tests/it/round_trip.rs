//! What goes in comes out.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::{fs, io};

use convoke_core::event::Progress;
use convoke_core::{
    AgentPath, CallId, Cause, Event, EventBody, Message, Millis, Part, Position, Role, RunSettings,
    StopReason, TaskId, ToolCall, Usage,
};
use convoke_journal::{Journal, JournalError, MemoryJournal};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{NOW, event, id, notice, notices, world};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<String>(),
        1 => "[a-z~/\"\\\\\u{0}-\u{1f}\u{2028}é😀]{0,40}",
        // Long enough to leave the line.
        1 => "[a-zé]{3000,9000}",
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        text().prop_map(Part::text),
        text().prop_map(|text| Part::Thought { text }),
        (text(), json_value())
            .prop_map(|(name, value)| Part::ToolCall(ToolCall::new("c", name, value))),
        (text(), json_value()).prop_map(|(provider, data)| Part::Opaque { provider, data }),
        (text(), text()).prop_map(|(mime, data)| Part::Media { mime, data }),
    ]
}

fn body() -> impl Strategy<Value = EventBody> {
    let parts = || prop::collection::vec(part(), 0..6);
    let millis = (0_u64..1 << 40).prop_map(|m| Millis::new(std::time::Duration::from_micros(m)));
    prop_oneof![
        (text(), text(), parts(), text()).prop_map(|(model, prompt, attachments, system)| {
            EventBody::RunStarted {
                task: TaskId::new("t"),
                model,
                prompt,
                attachments,
                history: Vec::new(),
                system: system.into(),
                tools: Arc::from([]),
                settings: RunSettings::default(),
                origin: Value::Null,
            }
        }),
        (parts(), any::<u32>()).prop_map(|(parts, tokens)| EventBody::ModelResponse {
            purpose: convoke_core::Purpose::Main,
            message: Message { role: Role::Assistant, parts },
            usage: Usage { input_tokens: tokens.into(), ..Usage::default() },
            stop: StopReason::Done,
            dropped_calls: tokens % 3,
        }),
        (text(), json_value()).prop_map(|(tool_name, params)| EventBody::ToolCallRequested {
            tool_name,
            params: Arc::new(params)
        }),
        (json_value(), parts(), millis).prop_map(|(result, content, duration_ms)| {
            EventBody::ToolCallCompleted {
                tool_name: "t".into(),
                result: Arc::new(result),
                content,
                display: None,
                duration_ms,
                files: Vec::new(),
            }
        }),
        (0.0_f64..1.0, text()).prop_map(|(used, message)| EventBody::BudgetWarning {
            budget: convoke_core::Limit::Turns,
            used,
            message
        }),
        prop::option::of(json_value()).prop_map(|answer| EventBody::RunEnded {
            outcome: Cause::Goal.into(),
            answer,
            usage: Usage::default()
        }),
        any::<u32>().prop_map(|turn| EventBody::TurnStarted { turn }),
        text().prop_map(|message| EventBody::Notice { message }),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = (body(), any::<bool>(), prop::option::of("[a-z]{1,8}"), any::<i64>());
    prop::collection::vec(one, 1..12).prop_map(|all| {
        let build =
            |(index, (body, of_child, call, ts)): (usize, (_, bool, Option<String>, i64))| {
                let mut event = event("root", index as u64 + 1, body);
                event.ts = convoke_core::Timestamp::from_millis(ts);
                event.call = call.map(CallId::new);
                if of_child {
                    event.run = id("child");
                    event.parent = Some(id("root"));
                    event.agent = AgentPath::default().child("digger");
                }
                event
            };
        all.into_iter().enumerate().map(build).collect()
    })
}

/// An answer of `null` and no answer are the same in JSON.
fn settled(mut event: Event) -> Event {
    if let EventBody::RunEnded { answer, .. } = &mut event.body {
        *answer = answer.take().filter(|answer| !answer.is_null());
    }
    event
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_events_come_back_as_they_were(events in events()) {
        let events: Vec<Event> = events.into_iter().map(settled).collect();
        let world = world();
        world.record("root", &events);
        let read = world.store.read(&id("root")).unwrap();
        prop_assert_eq!(read.damage, None);
        prop_assert_eq!(&read.events, &events);
        let opened = world.store.open(&id("root"), NOW).unwrap();
        prop_assert_eq!(opened.repaired, None);
        prop_assert_eq!(&opened.events, &events);
        let listed = world.store.list().unwrap();
        prop_assert_eq!(listed[0].events, events.len() as u64);
        prop_assert_eq!(&listed[0].problem, &None);
    }
}

#[test]
fn a_journal_goes_on_where_it_ended() {
    let world = world();
    let events = notices("run", 5);
    world.record("run", &events[..2]);
    for event in &events[2..] {
        let opened = world.store.open(&id("run"), NOW).unwrap();
        opened.journal.append(event).unwrap();
        assert_eq!(opened.journal.seq(), opened.events.len() as u64 + 1);
    }
    let read = world.store.read(&id("run")).unwrap();
    assert_eq!((read.events, read.damage), (events, None));
    assert_eq!(read.created, NOW);
    assert_eq!(read.program, concat!("convoke ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_journal_that_is_being_written_can_be_read() {
    let world = world();
    let journal = world.store.create(&id("run"), NOW).unwrap();
    assert_eq!(world.store.read(&id("run")).unwrap().events, []);
    journal.append(&notice("run", 1, "x")).unwrap();
    assert_eq!(world.store.read(&id("run")).unwrap().events, [notice("run", 1, "x")]);
}

#[test]
fn everything_belongs_to_its_owner_alone() {
    let world = world();
    let long = "long ".repeat(20_000);
    let store = convoke_journal::Store::at(world.state.path().join("deep/er"));
    let journal = store.create(&id("run"), NOW).unwrap();
    journal.append(&notice("run", 1, &long)).unwrap();
    let item = convoke_journal::Item::new("1", "message", serde_json::Map::new());
    store.inbox(&id("run")).unwrap().put(&item, NOW).unwrap();
    store.list().unwrap();
    let mut modes = Vec::new();
    let mut waiting = vec![world.state.path().join("deep")];
    while let Some(path) = waiting.pop() {
        let metadata = fs::metadata(&path).unwrap();
        let wanted = if metadata.is_dir() { 0o700 } else { 0o600 };
        modes.push(path.clone());
        assert_eq!(metadata.permissions().mode() & 0o777, wanted, "{}", path.display());
        if metadata.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    // deep, er, runs, run, blobs, inbox; journal, lock, blob, item, index.
    assert_eq!(modes.len(), 11, "{modes:?}");
}

/// goose PR #7972: what is begun twice under one id begins once.
#[test]
fn an_id_that_is_taken_or_could_escape_is_refused() {
    let world = world();
    world.record("run", &[]);
    let error = world.store.create(&id("run"), NOW).unwrap_err();
    assert!(matches!(error, JournalError::Taken { .. }), "{error:?}");
    for bad in ["../run", "", "..", "a/b", "\0"] {
        let run = id(bad);
        let errors = [
            world.store.create(&run, NOW).err(),
            world.store.open(&run, NOW).err(),
            world.store.read(&run).err(),
            world.store.remove(&run).err(),
            world.store.fork(&id("run"), 1, &run, NOW).err(),
            world.store.inbox(&run).err(),
        ];
        for error in errors {
            assert!(matches!(error, Some(JournalError::InvalidId { .. })), "{error:?}");
        }
    }
    assert_eq!(fs::read_dir(world.state.path()).unwrap().count(), 1);
}

#[test]
fn a_store_makes_nothing_before_a_run_does() {
    let world = world();
    let store = convoke_journal::Store::at(world.state.path().join("none"));
    assert_eq!(store.list().unwrap(), []);
    assert!(store.newest(convoke_journal::Scope::Everywhere, None).unwrap().run.is_none());
    assert!(matches!(store.open(&id("x"), NOW), Err(JournalError::NotFound { .. })));
    assert!(matches!(store.read(&id("x")), Err(JournalError::NotFound { .. })));
    assert!(matches!(store.remove(&id("x")), Err(JournalError::NotFound { .. })));
    assert!(!store.root().exists());
}

fn takes_events_in_order_only(journal: &dyn Journal) {
    journal.append(&notice("run", 1, "x")).unwrap();
    let error = journal.append(&notice("run", 3, "x")).unwrap_err();
    assert!(
        matches!(error.first(), JournalError::OutOfOrder { expected: 2, found: 3 }),
        "{error:?}"
    );
    let again = journal.append(&notice("run", 2, "x")).unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
    assert!(matches!(again.first(), JournalError::OutOfOrder { .. }));
}

#[test]
fn a_gap_closes_a_journal_and_the_error_is_repeated() {
    let world = world();
    takes_events_in_order_only(&MemoryJournal::new("run"));
    takes_events_in_order_only(&world.store.create(&id("run"), NOW).unwrap());
    assert_eq!(world.store.read(&id("run")).unwrap().events.len(), 1);
}

#[test]
fn what_is_not_the_runs_own_is_refused() {
    let mut ephemeral = notice("run", 1, "x");
    ephemeral.position = Position::Ephemeral { after: 0, index: 0 };
    ephemeral.body =
        EventBody::ToolCallProgress { tool_name: "t".into(), update: Progress::default() };
    let error = MemoryJournal::new("run").append(&ephemeral).unwrap_err();
    assert!(matches!(error.first(), JournalError::Ephemeral { after: 0 }));
    let error = MemoryJournal::new("run").append(&notice("other", 1, "x")).unwrap_err();
    assert!(matches!(error.first(), JournalError::OtherRun { .. }));
}

#[test]
fn memory_keeps_what_it_was_given() {
    let journal = MemoryJournal::new("run");
    let events = notices("run", 3);
    for event in &events {
        journal.append(event).unwrap();
    }
    journal.request_sync();
    journal.sync().wait().unwrap();
    assert_eq!(journal.events(), events);
}

fn nested(levels: usize) -> Event {
    let value = (0..levels).fold(json!(1), |inner, _| json!([inner]));
    event("run", 1, EventBody::ToolCallRequested { tool_name: "t".into(), params: Arc::new(value) })
}

#[test]
fn values_deeper_than_json_parsers_like_are_read_back_or_refused() {
    let world = world();
    // The envelope and the body are two levels.
    world.record("run", &[nested(254)]);
    assert_eq!(world.store.open(&id("run"), NOW).unwrap().events, [nested(254)]);
    let journal = world.store.create(&id("deeper"), NOW).unwrap();
    let mut deep = nested(255);
    deep.run = id("deeper");
    let error = journal.append(&deep).unwrap_err();
    assert!(matches!(error.first(), JournalError::TooDeep { seq: 1, limit: 256 }), "{error:?}");
    drop(journal);
    assert_eq!(world.store.open(&id("deeper"), NOW).unwrap().events, []);
}

#[test]
fn a_state_directory_that_is_a_file_is_explained() {
    let world = world();
    let path = world.state.path().join("file");
    fs::write(&path, "x").unwrap();
    let error = convoke_journal::Store::at(&path).create(&id("run"), NOW).unwrap_err();
    let JournalError::Io { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), io::ErrorKind::NotADirectory);
    assert!(error.to_string().contains("a part of this path is a file"), "{error}");
}
