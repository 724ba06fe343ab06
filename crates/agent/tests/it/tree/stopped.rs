//! A run that is stopped takes its agents along, and goes on with them if nothing else is wanted.

use std::sync::Arc;
use std::time::Duration;

use convoke_agent::{AgentExecutor, Paused, Task};
use convoke_core::{Cause, Event, EventBody, Message};
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use futures_util::StreamExt as _;
use serde_json::json;

use crate::family::{Cast, agent, answers, ask, asked, done, in_background, main_with};
use crate::support::read;

/// What works at every level when a run is stopped: an agent, one below it, and one in the background.
fn stopped_in_the_middle() -> (Arc<ScriptedModel>, AgentExecutor) {
    let mut middle = agent("middle");
    middle.agents = vec!["low".into()];
    let digs = in_background("digger", "dig");
    let nap = |millis: u64| Turn::call("nap", json!({ "millis": millis }));
    let model = Cast::new()
        .says(
            "main",
            [
                Turn::call("delegate_to_agent", digs),
                ask("middle", "x").and_call("nap", json!({ "millis": 1_000 })),
                Turn::text("all in"),
                Turn::text("all in, really"),
            ],
        )
        .says("middle", [ask("low", "y"), done("middle done")])
        .says("low", [nap(50_000), done("low done")])
        .says("digger", [nap(60_000), done("gold")])
        .model();
    let main = main_with(&model, [middle, agent("low"), agent("digger")]).build().unwrap();
    (model, main)
}

async fn stopped(main: &AgentExecutor, after: Duration) -> (Vec<Arc<Event>>, Paused) {
    let mut run = main.start("go");
    let handle = run.handle();
    let mut events = Vec::new();
    let stopper = async {
        tokio::time::sleep(after).await;
        handle.cancel();
    };
    let reader = async {
        while let Some(event) = run.next().await {
            events.push(event);
        }
    };
    tokio::join!(stopper, reader);
    assert_eq!(run.report().unwrap().outcome.cause, Cause::Interrupted);
    (events, run.pause())
}

/// Ctrl-C loses nothing: who goes on with the run goes on with its agents.
#[tokio::test(start_paused = true)]
async fn agents_that_were_stopped_with_the_run_are_taken_up_with_it() {
    let (model, main) = stopped_in_the_middle();
    let (_, paused) = stopped(&main, Duration::from_secs(10)).await;
    let before = asked(&model);
    assert_eq!(before.iter().filter(|who| *who == "main").count(), 2);
    let (events, report) = read(main.resume(paused, None).unwrap()).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    let spawned = |event: &&Arc<Event>| matches!(event.body, EventBody::AgentSpawned { .. });
    assert_eq!(events.iter().filter(spawned).count(), 0, "nobody was called a second time");
    let told = answers(&events, "main");
    assert!(told[0].starts_with("middle done"), "{told:?}");
    let after: Vec<String> = asked(&model).split_off(before.len());
    assert!(
        ["low", "middle", "digger", "main"].iter().all(|who| after.iter().any(|one| one == who)),
        "{after:?}"
    );
    let slept = |event: &&Arc<Event>| matches!(&event.body, EventBody::ToolCallFailed { tool_name, .. } if tool_name == "nap");
    assert_eq!(events.iter().filter(slept).count(), 0, "{told:?}");
}

/// Somebody who stops a run and says something else wants something else.
#[tokio::test(start_paused = true)]
async fn agents_that_were_stopped_are_given_up_when_there_is_something_else_to_do() {
    let (model, main) = stopped_in_the_middle();
    let (_, paused) = stopped(&main, Duration::from_secs(10)).await;
    let before = asked(&model).len();
    let (events, report) = read(main.resume(paused, Some(Task::new("forget it"))).unwrap()).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    assert_eq!(asked(&model).split_off(before), ["main"], "no agent went on");
    let told = answers(&events, "main");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("the agent `middle` was stopped together with the run"), "{told:?}");
    assert!(told[0].contains("agent_id: call_2"), "{told:?}");
    let last = model.requests().last().unwrap().messages.clone();
    let said: Vec<String> = last.iter().map(Message::words).collect();
    let notice = said.iter().rev().nth(1).unwrap();
    assert!(notice.contains("were stopped together with the run"), "{said:?}");
    assert!(notice.contains("`digger` (agent_id: call_1)"), "{said:?}");
    assert_eq!(said.last().unwrap(), "forget it");
}

/// Main has answered and only waits for an agent in the background.
fn stopped_while_it_waits() -> (Arc<ScriptedModel>, AgentExecutor) {
    let digs = in_background("digger", "dig");
    let model = Cast::new()
        .says(
            "main",
            [
                Turn::call("delegate_to_agent", digs),
                Turn::text("I wait."),
                Turn::text("I still wait."),
                Turn::text("So it is gold."),
            ],
        )
        .says("digger", [Turn::call("nap", json!({ "millis": 60_000 })), done("gold")])
        .model();
    let main = main_with(&model, [agent("digger")]).build().unwrap();
    (model, main)
}

/// A polite stop must not lose what a hard one keeps.
#[tokio::test(start_paused = true)]
async fn agents_in_the_background_are_taken_up_with_a_caller_that_waited_for_them() {
    let (model, main) = stopped_while_it_waits();
    let (_, paused) = stopped(&main, Duration::from_secs(10)).await;
    let before = asked(&model).len();
    let (events, report) = read(main.resume(paused, None).unwrap()).await;
    // It waits on as if nothing had happened, and is asked once more when the agent has ended.
    assert_eq!(report.text().as_deref(), Some("I still wait."), "{:?}", report.outcome);
    assert!(asked(&model).split_off(before).contains(&"digger".to_owned()));
    let spawned = |event: &&Arc<Event>| matches!(event.body, EventBody::AgentSpawned { .. });
    assert_eq!(events.iter().filter(spawned).count(), 0, "nobody was called a second time");
    let last = model.requests().last().unwrap().messages.last().unwrap().words();
    assert!(last.starts_with("The agent `digger` has ended in the background"), "{last}");
}

/// In a chat, the next request says who was stopped; who was given up once stays given up.
#[tokio::test(start_paused = true)]
async fn a_model_is_told_which_agents_in_the_background_were_given_up() {
    let (model, main) = stopped_while_it_waits();
    let (_, paused) = stopped(&main, Duration::from_secs(10)).await;
    let mut run = main.resume(paused, Some(Task::new("and now?"))).unwrap();
    while run.next().await.is_some() {}
    let said: Vec<String> = {
        let requests = model.requests();
        requests.last().unwrap().messages.iter().map(Message::words).collect()
    };
    assert!(said.iter().any(|said| said.contains("`digger` (agent_id: call_1)")), "{said:?}");
    assert_eq!(said.last().unwrap(), "and now?");
    assert_eq!(run.report().unwrap().text().as_deref(), Some("I still wait."));
    let (_, report) = read(main.resume(run.pause(), Some(Task::new("more"))).unwrap()).await;
    assert_eq!(report.text().as_deref(), Some("So it is gold."));
    let told = |request: &RequestSnapshot| {
        let words = request.messages.iter().map(Message::words);
        words.filter(|said| said.contains("were stopped together")).count()
    };
    assert_eq!(model.requests().last().map(told), Some(1), "it is told once");
    assert_eq!(asked(&model).iter().filter(|who| *who == "digger").count(), 1);
}
