//! Agents that work in the background: their caller goes on, and hears of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke_core::{Cause, EventBody};
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::{Answer, ask_with};
use futures_util::StreamExt as _;
use serde_json::json;

use super::hit;
use crate::family::{
    Cast, agent, answers, asked, done, in_background, main_with, team, turns, who,
};
use crate::support::{read, with};
use crate::world::World;

/// codex#22755, claude-code#94013: a background agent works on its own, is heard of when it has ended, and
/// its caller does not end before it.
#[tokio::test(start_paused = true)]
async fn an_agent_works_in_the_background_and_its_caller_waits_at_the_end() {
    let start = Turn::call("delegate_to_agent", in_background("slow", "dig"));
    let model = Cast::new()
        .says("main", [start, Turn::text("I am done."), Turn::text("Now I know: gold.")])
        .says("slow", [Turn::call("nap", json!({ "millis": 60_000 })), done("gold")])
        .model();
    let main = main_with(&model, [agent("slow")]).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!(report.text().as_deref(), Some("Now I know: gold."));
    let handle = &answers(&events, "main")[0];
    assert!(handle.contains("works in the background (agent_id: "), "{handle}");
    let last = model.requests().last().unwrap().messages.last().unwrap().words();
    assert!(
        last.starts_with("The agent `slow` has ended in the background. Its result:\n\ngold"),
        "{last}"
    );
    assert!(report.duration_ms.get() >= Duration::from_mins(1));
    let by = |who: &str, body: fn(&EventBody) -> bool| {
        events.iter().position(|event| event.agent.as_str() == who && body(&event.body)).unwrap()
    };
    let ended = |body: &EventBody| matches!(body, EventBody::RunEnded { .. });
    assert!(by("main/slow", ended) < by("main", ended));
}

#[tokio::test(start_paused = true)]
async fn background_agents_are_listed_waited_for_cancelled_and_collected() {
    let start = |name: &str| Turn::call("delegate_to_agent", in_background(name, "x"));
    let look = |action: &str| Turn::call("background_agents", json!({ "action": action }));
    let ids: Arc<Mutex<Vec<String>>> = Arc::default();
    let known = Arc::clone(&ids);
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let about = |action: &str, which: usize| {
            let id = known.lock().unwrap()[which].clone();
            Turn::call("background_agents", json!({ "action": action, "agent_id": id }))
        };
        match (who(request).as_str(), turns(request)) {
            ("main", 0) => start("quick"),
            ("main", 1) => start("slow"),
            ("main", 2) => look("list"),
            ("main", 3) => look("wait"),
            ("main", 4) => about("collect", 0),
            ("main", 5) => about("cancel", 1),
            ("main", _) => Turn::text("done"),
            ("quick", 0) => Turn::call("nap", json!({ "millis": 2_000 })),
            ("slow", 0) => Turn::call("nap", json!({ "millis": 500_000 })),
            (other, _) => done(&format!("{other} result")),
        }
    });
    let model = Arc::new(model);
    let main = main_with(&model, [agent("quick"), agent("slow")]).build().unwrap();
    let mut run = main.start("go");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        if let EventBody::AgentSpawned { child, background: true, .. } = &event.body {
            ids.lock().unwrap().push(child.to_string());
        }
        events.push(event);
    }
    let told = answers(&events, "main");
    assert!(
        told[2].contains("\"agent\":\"quick\"") && told[2].contains("\"status\":\"working\""),
        "{}",
        told[2]
    );
    assert!(told[3].contains("\"status\":\"completed\""), "{}", told[3]);
    assert!(told[4].starts_with("quick result"), "{}", told[4]);
    assert!(told[5].contains("did not complete its task (interrupted)"), "{}", told[5]);
    assert!(run.report().unwrap().duration_ms.get() < Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_stopped_stops_its_background_agents() {
    let start = Turn::call("delegate_to_agent", in_background("slow", "dig"));
    let model = Cast::new()
        .says("main", [start, Turn::text("I am done.")])
        .says("slow", [Turn::call("nap", json!({ "millis": 500_000 })), done("gold")])
        .model();
    let main = main_with(&model, [agent("slow")]).build().unwrap();
    let run = main.start("go");
    let handle = run.handle();
    let stopper = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        handle.cancel();
    };
    let ((events, report), ()) = tokio::join!(read(run), stopper);
    assert_eq!(report.outcome.cause, Cause::Interrupted);
    let ends: Vec<&str> = events
        .iter()
        .filter(|event| matches!(event.body, EventBody::RunEnded { .. }))
        .map(|event| event.agent.as_str())
        .collect();
    assert_eq!(ends, ["main/slow", "main"]);
    assert_eq!(asked(&model).len(), 3);
}

/// Where agents do not work in the background, a model that wants it is told so.
#[tokio::test(start_paused = true)]
async fn the_background_is_refused_where_it_is_not_offered() {
    let call = in_background("a", "x");
    let model =
        Cast::new().says("main", [Turn::call("delegate_to_agent", call), Turn::text("ok")]).model();
    let team = team([agent("a")]).background(false).build();
    let main = with(&model).system("Main.").team(team).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    assert!(answers(&events, "main")[0].contains("do not work in the background here"));
}

/// A no that one agent got was the end of all others in the background.
#[tokio::test]
async fn a_denial_does_not_stop_those_who_work_in_the_background() {
    let start = |name: &str| in_background(name, "x");
    let both = Turn::call("delegate_to_agent", start("refused"))
        .and_call("delegate_to_agent", start("slow"));
    let world = World::new();
    let model = Cast::new()
        .says("main", [both, Turn::text("waiting"), Turn::text("waiting"), Turn::text("done")])
        .says("refused", [hit("x"), done("was refused")])
        .says("slow", [Turn::call("nap", json!({ "millis": 300 })), done("gold")])
        .model();
    let approver = ask_with(async |_| Answer::no());
    let main = world.main(&model, [agent("refused"), agent("slow")], approver).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let ended = events.iter().find_map(|event| match &event.body {
        EventBody::RunEnded { outcome, .. } if event.agent.as_str() == "main/slow" => {
            Some(outcome.cause)
        }
        _ => None,
    });
    assert_eq!(ended, Some(Cause::Goal));
}
