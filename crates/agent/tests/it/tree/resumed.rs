//! A tree that parked, or whose process was lost, is taken up where it was, and nothing is done twice.

use std::sync::Arc;

use convoke_core::{Cause, Event, EventBody, Message, Part, RunId, Status};
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::{Answer, NobodyToAsk, ask_with};
use serde_json::json;

use super::{granting, hit};
use crate::family::{
    Cast, agent, answers, ask, asked, done, in_background, lost_after, task, turns, up_to, who,
};
use crate::support::read;
use crate::world::World;

/// Promise 8, opencode#43888: nobody there, two levels down: the whole tree waits, and goes on later.
#[tokio::test]
async fn a_tree_parks_and_goes_on_where_it_was() {
    let world = World::new();
    let both = ask("a", "1").and_call("delegate_to_agent", task("quick", "2"));
    let model = Cast::new()
        .says("main", [both])
        .says("a", [ask("b", "x")])
        .says("b", [hit("x")])
        .says("quick", [done("quick result")])
        .model();
    let agents = || [granting("a", &["b"]), agent("b"), agent("quick")];
    let main = world.main(&model, agents(), NobodyToAsk).build().unwrap();
    let (_, report) = read(main.start_as(RunId::new("r"), "go")).await;
    assert_eq!((report.outcome.status, report.exit_code() as u8), (Status::Parked, 8));
    assert_eq!(asked(&model).len(), 4, "{:?}", asked(&model));
    world.approve_all();
    let model = Cast::new()
        .says("main", [Turn::text("all done")])
        .says("a", [done("a result")])
        .says("b", [done("b result")])
        .model();
    let main = world.main(&model, agents(), NobodyToAsk).build().unwrap();
    let reopened = world.journals().reopen(&RunId::new("r")).unwrap();
    let (_, report) = read(main.resume(reopened.paused, None).unwrap()).await;
    assert_eq!(report.text().as_deref(), Some("all done"), "{:?}", report.outcome);
    assert_eq!(world.hits(), 1);
    assert_eq!(asked(&model), ["b", "a", "main"], "the one that had ended is not asked again");
    let results = serde_json::to_string(&model.requests()[2].messages.last()).unwrap();
    assert!(results.contains("a result") && results.contains("quick result"), "{results}");
}

/// Tells whether the run itself has ended.
fn is_over(event: &Event) -> bool {
    event.run == RunId::new("r") && matches!(event.body, EventBody::RunEnded { .. })
}

fn is_hit(body: &EventBody) -> bool {
    matches!(body, EventBody::ToolCallStarted { tool_name, .. } if tool_name == "hit")
}

fn is_end(body: &EventBody) -> bool {
    matches!(body, EventBody::AgentEnded { .. })
}

/// Counts what is like this before the process was lost and after.
fn count(begun: &[Event], later: &[Arc<Event>], is_counted: fn(&EventBody) -> bool) -> usize {
    let later = later.iter().map(|event| &event.body);
    let all = begun.iter().map(|event| &event.body).chain(later);
    all.filter(|body| is_counted(body)).count()
}

/// codex#33002, #22033, gemini-cli#20258: every moment in which the process is lost, at every depth. What
/// had ended is never done again, and the end is the same.
/// codex#19140, forgecode#3287: no agent is lost, and none is called a second time.
#[tokio::test]
async fn a_tree_is_taken_up_after_any_event() {
    let script = |request: &RequestSnapshot| {
        let answers = request.messages.iter().flat_map(|message| &message.parts);
        let answered = answers.filter(|part| matches!(part, Part::ToolResult { .. })).count();
        match (who(request).as_str(), answered) {
            ("main", 0) => ask("a", "1").and_call("delegate_to_agent", task("c", "2")),
            ("main", 2) => hit("main"),
            ("main", _) => Turn::text("all done"),
            ("a", 0) => ask("b", "x"),
            ("b", 0) => hit("b"),
            ("c", 0) => Turn::call("echo", json!({ "word": "c" })),
            (other, _) => done(&format!("{other} result")),
        }
    };
    let agents = || [granting("a", &["b"]), agent("b"), agent("c")];
    let yes = || ask_with(async |_| Answer::yes());
    let world = World::new();
    let model = Arc::new(ScriptedModel::from_fn(script));
    let main = world.main(&model, agents(), yes()).build().unwrap();
    let (_, report) = read(main.start_as(RunId::new("r"), "go")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    let events = world.events();
    let requests = model.requests().len();
    assert!(events.len() > 60, "{}", events.len());
    for kept in 1..events.len() {
        let again = World::new();
        let begun = events.get(..kept).unwrap();
        let model = Arc::new(ScriptedModel::from_fn(script));
        let main = again.main(&model, agents(), yes()).build().unwrap();
        if begun.iter().any(is_over) {
            continue;
        }
        let (later, report) = read(main.resume(lost_after(&events, kept), None).unwrap()).await;
        assert_eq!(report.outcome.cause, Cause::Goal, "after {kept}: {:?}", report.outcome);
        assert_eq!(report.text().as_deref(), Some("all done"), "after {kept}");
        // What began and is not known to have ended may have done harm: it is not done again.
        let hit_before = count(begun, &[], is_hit);
        assert_eq!(hit_before + again.hits() as usize, 2, "after {kept}");
        let answered = |event: &&Event| matches!(event.body, EventBody::ModelResponse { .. });
        let done = begun.iter().filter(answered).count();
        assert_eq!(model.requests().len() + done, requests, "after {kept}: nothing is asked twice");
        let spawned = |body: &EventBody| matches!(body, EventBody::AgentSpawned { .. });
        assert_eq!(count(begun, &later, spawned), 3, "after {kept}: each agent once");
        assert_eq!(count(begun, &later, is_end), 3, "after {kept}: each ends once");
    }
}

/// Design 5: an agent that works in the background survives the process.
#[tokio::test]
async fn a_background_agent_is_taken_up_again() {
    let script = |request: &RequestSnapshot| {
        let said = request.messages.iter().map(Message::words);
        let heard = said.into_iter().any(|said| said.contains("has ended in the background"));
        match (who(request).as_str(), turns(request)) {
            ("main", 0) => Turn::call("delegate_to_agent", in_background("slow", "dig")),
            ("main", _) if heard => Turn::text("all done"),
            ("main", _) => Turn::text("waiting"),
            ("slow", 0) => hit("slow"),
            (other, _) => done(&format!("{other} result")),
        }
    };
    let yes = || ask_with(async |_| Answer::yes());
    let world = World::new();
    let model = Arc::new(ScriptedModel::from_fn(script));
    let main = world.main(&model, [agent("slow")], yes()).build().unwrap();
    let (_, report) = read(main.start_as(RunId::new("r"), "go")).await;
    assert_eq!(report.text().as_deref(), Some("all done"));
    let events = world.events();
    for kept in 1..events.len() {
        let begun = events.get(..kept).unwrap();
        if begun.iter().any(is_over) {
            continue;
        }
        let again = World::new();
        let model = Arc::new(ScriptedModel::from_fn(script));
        let main = again.main(&model, [agent("slow")], yes()).build().unwrap();
        let (later, report) = read(main.resume(lost_after(&events, kept), None).unwrap()).await;
        assert_eq!(
            report.text().as_deref(),
            Some("all done"),
            "after {kept}: {:?}",
            report.outcome
        );
        let hit_before = count(begun, &[], is_hit);
        assert_eq!(hit_before + again.hits() as usize, 1, "after {kept}");
        assert_eq!(count(begun, &later, is_end), 1, "after {kept}");
    }
}

/// An agent that must not be run a second time is left alone when the process was lost in its middle.
#[tokio::test]
async fn an_agent_that_runs_at_most_once_is_not_taken_up() {
    let mut once = agent("once");
    once.run.at_most_once = true;
    let script = |request: &RequestSnapshot| match (who(request).as_str(), turns(request)) {
        ("main", 0) => ask("once", "x"),
        ("main", _) => Turn::text("all done"),
        ("once", 0) => Turn::call("echo", json!({ "word": "x" })),
        _ => done("once result"),
    };
    let world = World::new();
    let model = Arc::new(ScriptedModel::from_fn(script));
    let main = world.main(&model, [once.clone()], NobodyToAsk).build().unwrap();
    read(main.start_as(RunId::new("r"), "go")).await;
    let events = world.events();
    let kept = up_to(&events, |event| {
        event.agent.as_str() == "main/once" && matches!(event.body, EventBody::TurnStarted { .. })
    });
    let again = World::new();
    let model = Arc::new(ScriptedModel::from_fn(script));
    let main = again.main(&model, [once], NobodyToAsk).build().unwrap();
    let (events, report) = read(main.resume(lost_after(&events, kept), None).unwrap()).await;
    assert_eq!(report.text().as_deref(), Some("all done"));
    assert_eq!(asked(&model), ["main"], "the agent is not asked again");
    assert!(answers(&events, "main")[0].contains("Error (interrupted)"), "and its caller knows");
    assert_eq!(ends_of_once(&events), ["run_ended"]);
}

/// Returns how the run of the agent and its calls ended, in order.
fn ends_of_once(events: &[Arc<Event>]) -> Vec<String> {
    let of_once = events.iter().filter(|event| event.agent.as_str() == "main/once");
    let end = |event: &Arc<Event>| match &event.body {
        EventBody::RunEnded { .. } => Some("run_ended".to_owned()),
        EventBody::ToolCallFailed { error, .. } => Some(error.kind.as_str().to_owned()),
        EventBody::ModelFailed { error, .. } => Some(format!("model {error}")),
        _ => None,
    };
    of_once.filter_map(end).collect()
}

/// Whatever an agent was in the middle of gets its end, and so does its run.
#[tokio::test]
async fn lost_agent_that_runs_at_most_once_gets_an_end_for_all_it_began() {
    let mut once = agent("once");
    once.run.at_most_once = true;
    let script = |request: &RequestSnapshot| match (who(request).as_str(), turns(request)) {
        ("main", 0) => ask("once", "x"),
        ("main", _) => Turn::text("all done"),
        ("once", 0) => Turn::call("echo", json!({ "word": "x" })),
        _ => done("once result"),
    };
    let world = World::new();
    let model = Arc::new(ScriptedModel::from_fn(script));
    let main = world.main(&model, [once.clone()], NobodyToAsk).build().unwrap();
    read(main.start_as(RunId::new("r"), "go")).await;
    let events = world.events();
    let of_once = |event: &Event| event.agent.as_str() == "main/once";
    for (asks, expected) in
        [(false, vec!["interrupted", "run_ended"]), (true, vec!["model interrupted", "run_ended"])]
    {
        let kept = up_to(&events, |event| {
            let here = match &event.body {
                EventBody::ToolCallStarted { .. } => !asks,
                EventBody::ModelRequest { .. } => asks,
                _ => false,
            };
            here && of_once(event)
        });
        let again = World::new();
        let model = Arc::new(ScriptedModel::from_fn(script));
        let main = again.main(&model, [once.clone()], NobodyToAsk).build().unwrap();
        let (events, report) = read(main.resume(lost_after(&events, kept), None).unwrap()).await;
        assert_eq!(report.text().as_deref(), Some("all done"));
        assert_eq!(ends_of_once(&events), expected);
    }
}
