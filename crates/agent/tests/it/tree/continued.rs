//! Agents that ended and are told more: one conversation, continued by one call at a time.

use std::sync::{Arc, Mutex};

use convoke_agent::{Task, TreeLimits};
use convoke_core::{Event, EventBody, RunId};
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::{Answer, ask_with};
use futures_util::StreamExt as _;
use serde_json::json;

use crate::family::{Cast, agent, answers, ask, asked, done, main_with, team, turns, who};
use crate::support::{read, with};
use crate::world::World;

/// gemini-cli#17758, zed: an agent that ended goes on with something more, and knows what it did.
#[tokio::test(start_paused = true)]
async fn an_agent_that_ended_is_continued_by_its_id() {
    let id: Arc<Mutex<String>> = Arc::default();
    let known = Arc::clone(&id);
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let go_on = |id: &str| {
            Turn::call(
                "delegate_to_agent",
                json!({ "agent_name": "a", "prompt": "and now?", "agent_id": id }),
            )
        };
        match (who(request).as_str(), turns(request)) {
            ("main", 0) => ask("a", "first"),
            ("main", 1) => go_on(&known.lock().unwrap()),
            ("main", 2) => go_on("nobody"),
            ("main", _) => Turn::text("ok"),
            (_, turn) => done(&format!("result {turn}")).tokens(100, 10),
        }
    });
    let model = Arc::new(model);
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let mut run = main.start("go");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        if let EventBody::AgentSpawned { child, .. } = &event.body {
            *id.lock().unwrap() = child.to_string();
        }
        events.push(event);
    }
    let told = answers(&events, "main");
    assert!(told[0].starts_with("result 0") && told[1].starts_with("result 1"), "{told:?}");
    assert!(told[2].contains("you called no agent with the id `nobody`"), "{}", told[2]);
    let second = &model.requests()[3].messages;
    assert_eq!(second[0].words(), "first");
    assert_eq!(second.last().unwrap().words(), "and now?");
    let used: Vec<u64> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::AgentEnded { usage, .. } => Some(usage.output_tokens),
            _ => None,
        })
        .collect();
    assert_eq!(used, [10, 10], "what was counted before is not counted again");
}

/// codex#19140, #22364: an agent that ended in another process is still there to go on.
#[tokio::test]
async fn an_agent_is_continued_by_its_id_in_another_process() {
    let world = World::new();
    let yes = || ask_with(async |_| Answer::yes());
    let model = Cast::new()
        .says("main", [ask("a", "first"), Turn::text("ok")])
        .says("a", [done("one")])
        .model();
    let main = world.main(&model, [agent("a")], yes()).build().unwrap();
    read(main.start_as(RunId::new("r"), "go")).await;
    let more = json!({ "agent_name": "a", "prompt": "and now?", "agent_id": "call_1" });
    let model = Cast::new()
        .says("main", [Turn::call("delegate_to_agent", more), Turn::text("ok")])
        .says("a", [done("two")])
        .model();
    let main = world.main(&model, [agent("a")], yes()).build().unwrap();
    let reopened = world.journals().reopen(&RunId::new("r")).unwrap();
    let again = main.resume(reopened.paused, Some(Task::new("go on"))).unwrap();
    let (events, _) = read(again).await;
    let told = answers(&events, "main");
    assert!(told[0].starts_with("two"), "{told:?}");
    assert_eq!(asked(&model), ["main", "a", "main"]);
    let heard = &model.requests()[1].messages;
    assert_eq!(heard[0].words(), "first", "it knows what it did");
    assert_eq!(heard.last().unwrap().words(), "and now?");
}

/// Two calls that continue one agent at once would have worked on one conversation.
#[tokio::test(start_paused = true)]
async fn one_agent_is_continued_by_one_call_at_a_time_and_as_who_it_is() {
    let more =
        |name: &str| json!({ "agent_name": name, "prompt": "and now?", "agent_id": "call_1" });
    let twice = Turn::call("delegate_to_agent", more("a")).and_call("delegate_to_agent", more("a"));
    let other = Turn::call("delegate_to_agent", more("b"));
    let model = Cast::new()
        .says("main", [ask("a", "first"), twice, other, Turn::text("ok")])
        .says("a", [done("one"), Turn::call("nap", json!({ "millis": 1_000 })), done("two")])
        .model();
    let main = main_with(&model, [agent("a"), agent("b")]).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let told = answers(&events, "main");
    assert_eq!(told.iter().filter(|answer| answer.starts_with("two")).count(), 1, "{told:?}");
    assert!(
        told.iter().any(|answer| answer.contains("`call_1` works; wait for it first")),
        "{told:?}"
    );
    assert!(told[3].contains("the agent `call_1` is `a` and not `b`"), "{}", told[3]);
}

/// While both wait for a seat, neither has begun: the second must not begin what the first was promised.
#[tokio::test(start_paused = true)]
async fn one_agent_is_promised_to_one_call_also_while_it_waits_for_a_seat() {
    let more = json!({ "agent_name": "a", "prompt": "and now?", "agent_id": "call_1" });
    let three = ask("busy", "x")
        .and_call("delegate_to_agent", more.clone())
        .and_call("delegate_to_agent", more);
    let model = Cast::new()
        .says("main", [ask("a", "first"), three, Turn::text("ok")])
        .says("busy", [Turn::call("nap", json!({ "millis": 5_000 })), done("busy")])
        .says("a", [done("one"), done("two"), done("three")])
        .model();
    let mut limits = TreeLimits::default();
    limits.max_parallel = 1;
    let team = team([agent("a"), agent("busy")]).limits(limits).build();
    let main = with(&model).system("Main.").team(team).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let resumed = |event: &&Arc<Event>| matches!(event.body, EventBody::RunResumed { .. });
    assert_eq!(events.iter().filter(resumed).count(), 1, "{:?}", answers(&events, "main"));
}

/// What is said beside the inputs of an agent was thrown away.
#[tokio::test(start_paused = true)]
async fn what_is_said_beside_the_inputs_is_heard() {
    let call = json!({
        "agent_name": "a", "prompt": "Leave the fixtures alone.", "inputs": { "task": "Write tests." },
    });
    let model =
        Cast::new().says("main", [Turn::call("delegate_to_agent", call), Turn::text("ok")]).model();
    let main = main_with(&model, [agent("a")]).build().unwrap();
    read(main.start("go")).await;
    let asked = model.requests()[1].messages[0].words();
    assert!(
        asked.contains("Write tests.") && asked.contains("Leave the fixtures alone."),
        "{asked}"
    );
}
