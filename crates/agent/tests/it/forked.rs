//! A copy of a run that the user continues in another way: the message comes before anything old is repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use convoke_agent::{AgentBuilder, AgentExecutor, Paused, Place, Task, replay};
use convoke_core::event::VERSION;
use convoke_core::{
    AgentPath, Event, EventBody, Kind, Message, Part, Position, ReflectionMode, Role, RunId,
    Strategy,
};
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::testing::AllowAll;
use convoke_tool::{FunctionTool, MemorySink, ToolContext, ToolExecutor, ToolRegistry, ToolView};
use serde_json::json;

use crate::family::{Cast, agent, done, in_background, main_with, who};
use crate::support::{Word, durable, read, told};

const OTHERWISE: &str = "Do it in another way.";

/// A model that calls tools twice and answers; one that hears of another way answers at once.
fn model() -> Arc<ScriptedModel> {
    let answer = |request: &RequestSnapshot| {
        if hears(request) {
            return Turn::text("otherwise");
        }
        let said = request.messages.iter().filter(|message| message.role == Role::Assistant);
        match said.count() {
            0 => Turn::call("look", json!({ "word": "a" })).and_call("hit", json!({ "word": "b" })),
            1 => Turn::call("hit", json!({ "word": "x" })).and_call("look", json!({ "word": "y" })),
            _ => Turn::text("done"),
        }
    };
    Arc::new(ScriptedModel::from_fn(answer))
}

fn hears(request: &RequestSnapshot) -> bool {
    let is_it = |part: &Part| part.as_text() == Some(OTHERWISE);
    request.messages.iter().flat_map(|message| &message.parts).any(is_it)
}

/// An agent whose tools count how often they run.
fn counting(model: &Arc<ScriptedModel>, ran: &Arc<AtomicU32>) -> AgentBuilder {
    let registry = ToolRegistry::new();
    for (name, kind) in [("hit", Kind::Execute), ("look", Kind::Read)] {
        let ran = Arc::clone(ran);
        let tool = FunctionTool::new(name, "Counts.", move |_: Word, _: ToolContext| {
            ran.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, String>("ran") }
        });
        registry.register(tool.kind(kind)).unwrap();
    }
    let context = ToolContext::builder("t").build();
    let tools = ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll);
    AgentExecutor::with_model(model.clone(), tools)
}

/// Copies the first events of the run `r`, as a fork does.
fn forked(events: &[Event], at: usize) -> (Paused, Vec<Event>, Arc<MemorySink>) {
    let mut copied = events.get(..at).unwrap().to_vec();
    let last = copied.last().unwrap().clone();
    let body = EventBody::RunForked { from: RunId::new("original"), at: at as u64 };
    copied.push(Event {
        v: VERSION,
        position: Position::Durable { seq: at as u64 + 1 },
        run: RunId::new("r"),
        parent: None,
        agent: AgentPath::default(),
        call: None,
        body,
        ..last
    });
    let sink = Arc::new(MemorySink::default());
    (Paused::rebuild(&RunId::new("r"), &copied, Place::new(sink.clone())), copied, sink)
}

fn check_replay(mut all: Vec<Event>, sink: &MemorySink, at: usize) {
    all.extend(durable(&sink.events()));
    let replayed = replay(&RunId::new("r"), &all);
    assert!(replayed.is_ok(), "forked at {at}: {}", replayed.unwrap_err());
}

/// Tells how many calls of the answers in a conversation have no result, or more than one.
fn unpaired(messages: &[Message]) -> usize {
    let results: Vec<_> = messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::ToolResult { call, .. } => Some(call.clone()),
            _ => None,
        })
        .collect();
    let calls = messages.iter().flat_map(Message::calls);
    calls.filter(|call| results.iter().filter(|id| **id == call.id).count() != 1).count()
}

async fn check_every_cut(settings: impl Fn(AgentBuilder) -> AgentBuilder) {
    let ran = Arc::new(AtomicU32::new(0));
    let whole = settings(counting(&model(), &ran)).build().unwrap();
    let events = durable(&read(whole.start_as(RunId::new("r"), "Go.")).await.0);
    assert_eq!(ran.load(Ordering::Relaxed), 4);

    for at in 1..=events.len() {
        let (again, ran) = (model(), Arc::new(AtomicU32::new(0)));
        let (paused, copied, sink) = forked(&events, at);
        let fork = settings(counting(&again, &ran)).build().unwrap();
        let run = fork.resume(paused, Some(Task::new(OTHERWISE))).unwrap();
        let (_, report) = read(run).await;
        let told = told(&sink.events());
        assert_eq!(report.text().as_deref(), Some("otherwise"), "forked at {at}: {told:?}");
        assert_eq!(ran.load(Ordering::Relaxed), 0, "forked at {at}: {told:?}");
        let requests = again.requests();
        assert!(requests.iter().all(hears), "forked at {at}: {told:?}");
        assert_eq!(unpaired(&requests.last().unwrap().messages), 0, "forked at {at}: {told:?}");
        check_replay(copied, &sink, at);
    }
}

#[tokio::test]
async fn fork_with_a_message_repeats_no_call_and_no_request_before_it() {
    check_every_cut(|agent| agent).await;
}

#[tokio::test]
async fn fork_with_a_message_of_a_planned_run_delivers_it_before_the_plan_and_the_look_back() {
    check_every_cut(|agent| agent.strategy(Strategy::Planned).reflection(ReflectionMode::Always))
        .await;
}

#[tokio::test]
async fn fork_without_a_message_repeats_what_was_open() {
    let ran = Arc::new(AtomicU32::new(0));
    let whole = counting(&model(), &ran).build().unwrap();
    let events = durable(&read(whole.start_as(RunId::new("r"), "Go.")).await.0);
    let is_response = |event: &Event| matches!(event.body, EventBody::ModelResponse { .. });
    let at = events.iter().position(is_response).unwrap() + 1;
    let (again, ran) = (model(), Arc::new(AtomicU32::new(0)));
    let (paused, copied, sink) = forked(&events, at);
    let run = counting(&again, &ran).build().unwrap().resume(paused, None).unwrap();
    let (_, report) = read(run).await;
    assert_eq!(report.text().as_deref(), Some("done"));
    assert_eq!(ran.load(Ordering::Relaxed), 4, "the calls that had not begun are made");
    check_replay(copied, &sink, at);
}

#[tokio::test]
async fn fork_with_a_message_abandons_agents_that_work_in_it() {
    let cast = || {
        let calls = Turn::call("delegate_to_agent", in_background("slow", "Wait."))
            .and_call("delegate_to_agent", crate::family::task("quick", "Look."));
        let cast = Cast::new().says("main", [calls, Turn::text("done")]);
        let cast = cast.says("slow", [Turn::call("nap", json!({ "millis": 50 })), done("slow")]);
        cast.says("quick", [Turn::call("echo", json!({ "word": "q" })), done("quick")]).model()
    };
    let whole = main_with(&cast(), [agent("slow"), agent("quick")]).build().unwrap();
    let events = durable(&read(whole.start_as(RunId::new("r"), "Go.")).await.0);
    assert!(events.len() > 20, "{}", events.len());

    for at in 1..=events.len() {
        let model = Arc::new(ScriptedModel::from_fn(|request: &RequestSnapshot| {
            if hears(request) { Turn::text("otherwise") } else { Turn::text("repeated") }
        }));
        let (paused, copied, sink) = forked(&events, at);
        let fork = main_with(&model, [agent("slow"), agent("quick")]).build().unwrap();
        let run = fork.resume(paused, Some(Task::new(OTHERWISE))).unwrap();
        let (_, report) = read(run).await;
        let told = told(&sink.events());
        assert_eq!(report.text().as_deref(), Some("otherwise"), "forked at {at}: {told:?}");
        let requests = model.requests();
        let is_main = |request: &RequestSnapshot| who(request) == "main" && hears(request);
        assert!(requests.iter().all(is_main), "forked at {at}: {told:?}");
        let made = told.iter().filter(|event| event.starts_with("tool_call_started")).count();
        assert_eq!(made, 0, "forked at {at}: {told:?}");
        let all: Vec<Event> = copied.iter().cloned().chain(durable(&sink.events())).collect();
        let spawned = |event: &&Event| matches!(event.body, EventBody::AgentSpawned { .. });
        let ended = |event: &&Event| matches!(event.body, EventBody::AgentEnded { .. });
        let (spawned, ended) = (all.iter().filter(spawned), all.iter().filter(ended));
        assert_eq!(spawned.count(), ended.count(), "forked at {at}: {told:?}");
        assert_eq!(convoke_journal::open_questions(&all), []);
        check_replay(copied, &sink, at);

        // What was abandoned stays abandoned.
        let place = Place::new(Arc::new(MemorySink::default()));
        let paused = Paused::rebuild(&RunId::new("r"), &all, place);
        let fork = main_with(&model, [agent("slow"), agent("quick")]).build().unwrap();
        let run = fork.resume(paused, Some(Task::new(OTHERWISE))).unwrap();
        read(run).await;
        assert!(model.requests().iter().all(is_main), "forked at {at}, resumed");
    }
}
