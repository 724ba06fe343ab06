//! Answers of a run's model for somebody behind a tool: they need no agents, and take nothing from them.

use std::sync::Arc;

use convoke_agent::{
    AgentBuilder, AgentExecutor, Consultation, Paused, Place, Task, TreeLimits, consult,
};
use convoke_core::{Cause, EventBody, Kind, Message, Role, RunId};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::testing::AllowAll;
use convoke_tool::{FunctionTool, MemorySink, ToolContext, ToolExecutor, ToolRegistry, ToolView};
use futures_util::StreamExt as _;
use serde_json::json;

use crate::family::{Cast, agent, answers, ask, done, team};
use crate::support::{PausedClock, Word, durable, read};

/// An agent with a tool that asks the model of its run.
fn musing(model: &Arc<ScriptedModel>) -> AgentBuilder {
    let muse = async |word: Word, context: ToolContext| {
        let asked = Consultation {
            who: "oracle".to_owned(),
            system: Some("You are oracle. Be brief.".to_owned()),
            messages: vec![Message::text(Role::User, word.word)],
            max_tokens: 50,
        };
        consult(&context, asked).await.map(|counsel| counsel.text)
    };
    let registry = ToolRegistry::new();
    registry.register(FunctionTool::new("muse", "Muses.", muse).kind(Kind::Read)).unwrap();
    let context = ToolContext::builder("t").clock(Arc::new(PausedClock::new())).build();
    let tools = ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll);
    AgentExecutor::with_model(model.clone(), tools).system("The main agent.")
}

fn muse() -> Turn {
    Turn::call("muse", json!({ "word": "Why?" }))
}

/// Whoever asks gives its seat to who answers: with one seat, both would wait for good.
#[tokio::test(start_paused = true)]
async fn an_answer_does_not_wait_for_the_seat_of_who_asks() {
    let model = Cast::new()
        .says("main", [ask("w", "Muse."), Turn::text("ok")])
        .says("w", [muse(), done("mused")])
        .says("oracle", [Turn::text("42")])
        .model();
    let mut limits = TreeLimits::default();
    limits.max_parallel = 1;
    let team = team([agent("w")]).limits(limits).build();
    let main = musing(&model).team(team).build().unwrap();
    let began = tokio::time::Instant::now();
    let (events, report) = read(main.start("go")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    assert_eq!(answers(&events, "main/w"), ["42"]);
    assert!(began.elapsed().as_secs() < 1, "{:?}", began.elapsed());
}

/// It is one plain question: nothing is said to the model but what was asked, and what it says is the answer.
#[tokio::test(start_paused = true)]
async fn the_model_is_asked_what_was_asked_and_nothing_else() {
    let model = Cast::new()
        .says("main", [muse(), Turn::text("ok")])
        .says("oracle", [Turn::text("Because.")])
        .model();
    let (events, _) = read(musing(&model).build().unwrap().start("go")).await;
    assert_eq!(answers(&events, "main"), ["Because."]);
    let requests = model.requests();
    let asked = &requests[1];
    assert_eq!(asked.system, "You are oracle. Be brief.");
    assert!(asked.tools.is_empty(), "{:?}", asked.tools);
    assert_eq!(asked.messages.iter().map(Message::words).collect::<Vec<_>>(), ["Why?"]);
}

/// The limits of agents are about agents: answers do not count as some, are not kept back where no more may
/// be called, and are there where no agents are.
#[tokio::test(start_paused = true)]
async fn answers_are_not_held_against_the_limits_of_agents() {
    let model = Cast::new()
        .says("main", [muse(), muse(), ask("w", "Muse."), ask("w", "Again."), Turn::text("ok")])
        .says("w", [muse().and_call("muse", json!({ "word": "Who?" })), muse(), done("mused")])
        .says("oracle", (0..8).map(|_| Turn::text("42")))
        .model();
    let mut limits = TreeLimits::default();
    (limits.max_depth, limits.max_agents) = (1, 1);
    let team = team([agent("w")]).limits(limits).build();
    let main = musing(&model).team(team).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    assert_eq!(answers(&events, "main/w"), ["42", "42", "42"]);
    let told = answers(&events, "main");
    assert_eq!(told[..2], ["42", "42"]);
    assert!(told[2].contains("mused"), "{told:?}");
    assert!(told[3].contains("has called 1 agent,"), "{told:?}");

    let model = Cast::new()
        .says("main", [muse(), Turn::text("ok")])
        .says("oracle", [Turn::text("42")])
        .model();
    let (events, _) = read(musing(&model).build().unwrap().start("go")).await;
    assert_eq!(answers(&events, "main"), ["42"]);
}

/// Neither do they count when a run is taken up again.
#[tokio::test(start_paused = true)]
async fn answers_of_a_run_that_is_taken_up_again_are_no_agents() {
    let model = Cast::new()
        .says("main", [muse(), muse(), Turn::text("ok"), ask("w", "Work."), Turn::text("fine")])
        .says("oracle", [Turn::text("42"), Turn::text("42")])
        .says("w", [done("worked")])
        .model();
    let mut limits = TreeLimits::default();
    limits.max_agents = 1;
    let team = team([agent("w")]).limits(limits).build();
    let main = musing(&model).team(team).build().unwrap();
    let (events, _) = read(main.start_as(RunId::new("r"), "go")).await;
    let place = Place::new(Arc::new(MemorySink::default()));
    let paused = Paused::rebuild(&RunId::new("r"), &durable(&events), place);
    let mut run = main.resume(paused, Some(Task::new("go on"))).unwrap();
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    let told = answers(&events, "main");
    assert!(told[0].contains("worked"), "{told:?}");
}

/// Nobody waits for an answer any more whose call was lost: it is over, and what it used is counted.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_lost_with_its_process_is_over() {
    let model = Cast::new()
        .says("main", [muse(), Turn::text("ok")])
        .says("oracle", [Turn::text("42")])
        .model();
    let main = musing(&model).build().unwrap();
    let (events, _) = read(main.start_as(RunId::new("r"), "go")).await;
    let events = durable(&events);
    let begun = events.iter().position(|event| event.parent.is_some()).unwrap() + 1;
    let place = Place::new(Arc::new(MemorySink::default()));
    let paused = Paused::rebuild(&RunId::new("r"), &events[..begun], place);
    let model =
        Cast::new().says("main", [Turn::text("ok")]).says("oracle", [Turn::text("42")]).model();
    let main = musing(&model).build().unwrap();
    let (later, report) = read(main.resume(paused, None).unwrap()).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    let ended: Vec<(&str, Cause)> = later
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::AgentEnded { child, outcome, .. } => Some((child.as_str(), outcome.cause)),
            _ => None,
        })
        .collect();
    assert_eq!(ended, [("r-call_1", Cause::Terminated), ("r-call_1-2", Cause::Goal)]);
}
