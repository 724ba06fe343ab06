//! A run that is lost anywhere goes on in another process as if nothing had happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use convoke_agent::{
    AgentBuilder, AgentExecutor, Journals, NotResumable, Paused, Place, Task, last_said, replay,
};
use convoke_core::{Cause, Event, EventBody, Kind, Message, Part, Position, Role, RunId};
use convoke_journal::Store;
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    FunctionTool, MemorySink, SystemClock, ToolContext, ToolExecutor, ToolRegistry, ToolView,
};
use serde_json::json;

use crate::support::{Word, durable, echo, read, script, told, with};

/// A model that looks at the conversation alone to know what to do: two looks at once, then two things
/// that must not be done twice, then an answer.
fn model() -> Arc<ScriptedModel> {
    let answer = |request: &RequestSnapshot| {
        let said = request.messages.iter().filter(|message| message.role == Role::Assistant);
        match said.count() {
            0 => {
                Turn::call("echo", json!({ "word": "a" })).and_call("echo", json!({ "word": "b" }))
            }
            1 => Turn::call("hit", json!({ "word": "x" })).and_call("hit", json!({ "word": "y" })),
            2 => Turn::call("echo", json!({ "word": "c" })),
            _ => Turn::text("done"),
        }
    };
    Arc::new(ScriptedModel::from_fn(answer))
}

/// An agent with a tool that leaves a mark in the world each time it is called.
fn agent(model: &Arc<ScriptedModel>, marks: &Arc<AtomicU32>) -> AgentBuilder {
    let registry = ToolRegistry::new();
    let marks = Arc::clone(marks);
    let hit = FunctionTool::new("hit", "Hits.", move |_: Word, _: ToolContext| {
        marks.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, String>("hit") }
    });
    registry.register(hit.kind(Kind::Execute)).unwrap();
    registry.register(echo()).unwrap();
    let context = ToolContext::builder("t").build();
    let tools = ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll);
    AgentExecutor::with_model(model.clone(), tools)
}

fn rebuilt(events: &[Event]) -> (Paused, Arc<MemorySink>) {
    let sink = Arc::new(MemorySink::default());
    (Paused::rebuild(&RunId::new("r"), events, Place::new(sink.clone())), sink)
}

fn words(message: &Message) -> String {
    let text = |part: &Part| match part {
        Part::ToolResult { content, .. } => {
            content.iter().filter_map(Part::as_text).collect::<String>()
        }
        other => other.as_text().unwrap_or_default().to_owned(),
    };
    message.parts.iter().map(text).collect()
}

/// goose#7914, #1624, #33, PR #7972: a run that was lost anywhere goes on with a whole conversation, and what
/// it did is not done again.
#[tokio::test]
async fn wherever_it_is_lost_a_run_ends_with_the_same_answer_and_does_nothing_twice() {
    let (whole, marks) = (model(), Arc::new(AtomicU32::new(0)));
    let run = agent(&whole, &marks).build().unwrap().start_as(RunId::new("r"), "Go.");
    let (events, report) = read(run).await;
    assert_eq!((report.text().as_deref(), marks.load(Ordering::Relaxed)), (Some("done"), 2));
    let events = durable(&events);

    for lost_after in 1..events.len() {
        let before = &events[..lost_after];
        let begun = |event: &&Event| matches!(&event.body, EventBody::ToolCallStarted { tool_name, .. } if tool_name == "hit");
        let ended = |event: &&Event| matches!(&event.body, EventBody::ToolCallCompleted { tool_name, .. } if tool_name == "hit");
        let (begun, ended) = (before.iter().filter(begun), before.iter().filter(ended));
        let in_flight = begun.clone().count() - ended.count();

        let (again, marks) = (model(), Arc::new(AtomicU32::new(0)));
        let (paused, sink) = rebuilt(before);
        let run = agent(&again, &marks).build().unwrap().resume(paused, None).unwrap();
        let (_, report) = read(run).await;
        let told = told(&sink.events());
        assert_eq!(report.text().as_deref(), Some("done"), "lost after {lost_after}: {told:?}");
        let marks = marks.load(Ordering::Relaxed) as usize;
        assert_eq!(marks + begun.count(), 2, "lost after {lost_after}: {told:?}");

        let asked = again.requests();
        let expected = whole.requests();
        let tail = &expected[expected.len() - asked.len()..];
        if in_flight == 0 {
            assert_eq!(asked, tail, "lost after {lost_after}");
        } else {
            let answers: String = asked.last().unwrap().messages.iter().map(words).collect();
            let interrupted = answers.matches("Error (interrupted)").count();
            assert_eq!(interrupted, in_flight, "lost after {lost_after}: {answers}");
        }
        let mut all = before.to_vec();
        all.extend(durable(&sink.events()));
        let replayed = replay(&RunId::new("r"), &all);
        assert!(replayed.is_ok(), "lost after {lost_after}: {}", replayed.unwrap_err());
        let numbered =
            all.iter().zip(1..).all(|(event, seq)| event.position == Position::Durable { seq });
        assert!(numbered, "it goes on in the same stream");
    }
}

#[tokio::test]
async fn an_answer_that_was_lost_is_charged_at_the_estimate() {
    let whole = model();
    let marks = Arc::new(AtomicU32::new(0));
    let run = agent(&whole, &marks).build().unwrap().start_as(RunId::new("r"), "Go.");
    let events = durable(&read(run).await.0);
    let asked =
        events.iter().position(|event| matches!(event.body, EventBody::ModelRequest { .. }));
    let (done, _) = rebuilt(&events);
    let refused = agent(&model(), &marks).build().unwrap().resume(done, None).unwrap_err();
    assert!(matches!(refused, NotResumable::Done(_)), "{refused}");
    let (paused, sink) = rebuilt(&events[..=asked.unwrap()]);
    let expected = paused.context_tokens();
    read(agent(&model(), &marks).build().unwrap().resume(paused, None).unwrap()).await;
    let lost = sink.events().iter().find_map(|event| match &event.body {
        EventBody::RunResumed { lost, .. } => Some(*lost),
        _ => None,
    });
    let lost = lost.unwrap();
    assert!(lost.estimated && lost.input_tokens == expected, "{lost:?}");
}

#[tokio::test]
async fn a_run_that_ended_is_talked_to_again() {
    let model = script([Turn::text("one"), Turn::text("two"), Turn::text("three")]);
    let agent = with(&model).build().unwrap();
    let mut run = agent.start("First.");
    while futures_util::StreamExt::next(&mut run).await.is_some() {}
    let paused = run.pause();
    assert_eq!(paused.outcome().unwrap().cause, Cause::Goal);

    let (events, report) = read(agent.resume(paused, Some(Task::new("Second."))).unwrap()).await;
    assert_eq!(report.text().as_deref(), Some("two"));
    assert_eq!(told(&events)[..2], ["run_resumed", "user_message"]);
    let request = model.requests().pop().unwrap();
    let said: Vec<String> = request.messages.iter().map(Message::words).collect();
    assert_eq!(said, ["First.", "one", "Second."]);
}

#[tokio::test]
async fn what_is_said_meanwhile_may_show_something() {
    let model = script([Turn::text("seen")]);
    let mut run = with(&model).build().unwrap().start("First.");
    run.handle().say(Task::new("Look.").attach(Part::text("A file."))).unwrap();
    while futures_util::StreamExt::next(&mut run).await.is_some() {}
    let said = run.pause().messages();
    let shown = said.iter().find(|message| message.words() == "A file.Look.").unwrap();
    assert_eq!((shown.role, shown.parts.len()), (Role::User, 2));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_stopped_goes_on_where_it_was() {
    let slow = Turn::wait(Duration::from_hours(1));
    let model = script([Turn::call("echo", json!({ "word": "a" })), slow, Turn::text("done")]);
    let agent = with(&model).build().unwrap();
    let mut run = agent.start("Go.");
    while let Some(event) = futures_util::StreamExt::next(&mut run).await {
        if matches!(event.body, EventBody::ToolCallCompleted { .. }) {
            run.handle().cancel();
        }
    }
    let paused = run.pause();
    assert_eq!(paused.outcome().unwrap().cause, Cause::Interrupted);
    let (_, report) = read(agent.resume(paused, None).unwrap()).await;
    assert_eq!((report.outcome.cause, report.text().as_deref()), (Cause::Goal, Some("done")));
}

#[tokio::test]
async fn what_never_began_cannot_go_on() {
    let (paused, _) = rebuilt(&[]);
    let agent = with(&script([])).build().unwrap();
    assert_eq!(agent.resume(paused, None).unwrap_err(), NotResumable::Empty(RunId::new("r")));
}

#[tokio::test]
async fn a_record_that_was_changed_does_not_come_out_the_same() {
    let marks = Arc::new(AtomicU32::new(0));
    let run = agent(&model(), &marks).build().unwrap().start_as(RunId::new("r"), "Go.");
    let mut events = durable(&read(run).await.0);
    let replayed = replay(&RunId::new("r"), &events).unwrap();
    assert!(replayed.decided > 20 && replayed.events == events.len(), "{replayed:?}");
    let turn = events.iter().position(|event| event.body == EventBody::TurnEnded { turn: 2 });
    let turn = turn.unwrap();
    events[turn].body = EventBody::TurnEnded { turn: 7 };
    let difference = replay(&RunId::new("r"), &events).unwrap_err();
    assert_eq!(difference.seq, turn as u64 + 1);
    assert_eq!(difference.decided, Some(EventBody::TurnEnded { turn: 2 }));
    let shown = difference.to_string();
    assert!(shown.contains(r#"recorded: {"type":"turn_ended","data":{"turn":7}}"#), "{shown}");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Set {
    key: String,
    value: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Get {
    key: String,
}

/// An agent in a process of its own: nothing but the journal is shared.
fn in_a_new_process(model: &Arc<ScriptedModel>, journals: &Journals) -> AgentExecutor {
    let registry = ToolRegistry::new();
    let set = async |set: Set, context: ToolContext| {
        context.environment().set(set.key, set.value);
        Ok::<_, String>("set")
    };
    let set = FunctionTool::new("set_env", "Sets a variable.", set)
        .kind(Kind::Edit)
        .takes_secrets()
        .sets_variable(|set: &Set| (set.key.clone(), set.value.clone()));
    let get = async |get: Get, context: ToolContext| {
        Ok::<_, String>(format!("{:?}", context.environment().get(&get.key)))
    };
    registry.register(set).unwrap();
    registry.register(FunctionTool::new("get_env", "Reads one.", get).kind(Kind::Read)).unwrap();
    let context = ToolContext::builder("t").build();
    let tools = ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll);
    AgentExecutor::with_model(model.clone(), tools)
        .keeper(Arc::new(journals.clone()))
        .build()
        .unwrap()
}

/// They were forgotten with the process.
#[tokio::test]
async fn variables_that_a_run_set_come_back_from_its_journal() {
    const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let state = tempfile::tempdir().unwrap();
    let journals = Journals::new(Store::at(state.path()), Arc::new(SystemClock));
    let id = RunId::new("r");
    let set = |key: &str, value: &str| Turn::call("set_env", json!({ "key": key, "value": value }));
    let model = script([
        set("COLOUR", "red"),
        set("COLOUR", "blue"),
        set("DEPLOY", TOKEN),
        Turn::text("Set."),
    ]);
    let run = in_a_new_process(&model, &journals).start_as(id.clone(), "Set them.");
    assert_eq!(run.finish().await.outcome.cause, Cause::Goal);

    for (time, expected) in [(1, true), (2, false)] {
        let get = |key: &str| Turn::call("get_env", json!({ "key": key }));
        let model = script([get("COLOUR"), get("DEPLOY"), Turn::text("Read.")]);
        let agent = in_a_new_process(&model, &journals);
        let paused = journals.reopen(&id).unwrap().paused;
        let report = agent.resume(paused, Some(Task::new("Read them."))).unwrap().finish().await;
        assert_eq!(report.outcome.cause, Cause::Goal, "{time}");
        let events = journals.store().read(&id).unwrap().events;
        let answers: Vec<String> = events
            .iter()
            .filter_map(|event| match &event.body {
                EventBody::ToolCallCompleted { content, .. } => content.first()?.as_text(),
                _ => None,
            })
            .map(str::to_owned)
            .collect();
        let [.., colour, deploy] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!(colour, "Visible(\"blue\")");
        assert_eq!(deploy, "Unset", "a name is no secret");
        let last = events.iter().rev().find_map(|event| match &event.body {
            EventBody::UserMessage { message } => Some(message.clone()),
            _ => None,
        });
        let parts = last.unwrap().parts;
        let told = parts.iter().any(|part| part.as_text().unwrap().contains("`DEPLOY`"));
        assert_eq!(told, expected, "the model is told once: {parts:?}");
        assert_eq!(last_said(&id, &events), Some("Read them."));
        assert!(replay(&id, &events).is_ok());
    }
}

#[tokio::test]
async fn what_the_runtime_says_is_not_what_a_person_said() {
    let state = tempfile::tempdir().unwrap();
    let journals = Journals::new(Store::at(state.path()), Arc::new(SystemClock));
    let id = RunId::new("r");
    let model = script([Turn::call("get_env", json!({ "key": "A" })), Turn::text("It.")]);
    let agent = in_a_new_process(&model, &journals);
    agent.start_as(id.clone(), "Look.").finish().await;
    let mut events = journals.store().read(&id).unwrap().events;
    assert_eq!(last_said(&id, &events), Some("Look."));
    let mut said = |text: &str| {
        let message = Message::text(Role::User, text);
        let body = EventBody::UserMessage { message };
        events.push(Event { body, ..events[0].clone() });
        last_said(&id, &events).map(str::to_owned)
    };
    assert_eq!(
        said("You were stopped before the task was done. Go on where you were.").as_deref(),
        Some("Look.")
    );
    assert_eq!(said("And now?").as_deref(), Some("And now?"));
}

#[tokio::test]
async fn replay_of_a_call_with_a_very_long_name_comes_out_the_same() {
    for length in [127, 128, 129, 200, 5_000] {
        let name = "né".repeat(length / 3 + 1);
        let model = script([Turn::call(&name, json!({ "word": "x" })), Turn::text("done")]);
        let run = with(&model).build().unwrap().start_as(RunId::new("r"), "Go.");
        // Reading a run does it again as well, and compares.
        let (events, report) = read(run).await;
        assert_eq!(report.text().as_deref(), Some("done"), "{length}");
        assert!(replay(&RunId::new("r"), &durable(&events)).is_ok(), "{length}");
    }
}
