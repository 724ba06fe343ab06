//! How a caller ends whose agents were refused something.

use convoke_agent::RunReport;
use convoke_core::{Cause, EventBody};
use convoke_model::scripted::Turn;
use convoke_tool::{Answer, ask_with};
use serde_json::json;

use super::hit;
use crate::family::{Cast, agent, answers, ask, done, in_background, task};
use crate::support::read;
use crate::world::World;

/// What decides is that something was done beside what was refused, and not which call came first.
#[tokio::test]
async fn an_agent_that_completed_is_complete_whatever_the_order_of_its_calls() {
    let look = json!({ "word": "a" });
    let orders = [
        Turn::call("echo", look.clone()).and_call("hit", look.clone()),
        Turn::call("hit", look.clone()).and_call("echo", look.clone()),
    ];
    for calls in orders {
        let world = World::new();
        let model = Cast::new()
            .says("main", [ask("a", "x"), Turn::text("ok")])
            .says("a", [calls, done("as far as I may")])
            .model();
        let approver = ask_with(async |_| Answer::no());
        let main = world.main(&model, [agent("a")], approver).build().unwrap();
        let (events, report) = read(main.start("go")).await;
        assert_eq!(report.outcome.cause, Cause::Goal);
        let told = &answers(&events, "main")[0];
        assert!(told.starts_with("as far as I may"), "{told}");
        assert!(told.contains("Some of its calls were refused: `hit`."), "{told}");
        let ended = events.iter().find_map(|event| match &event.body {
            EventBody::AgentEnded { outcome, .. } => Some(outcome.cause),
            _ => None,
        });
        assert_eq!(ended, Some(Cause::Goal));
    }
    let world = World::new();
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", [hit("x"), done("nothing")])
        .model();
    let main = world.main(&model, [agent("a")], ask_with(async |_| Answer::no())).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!(report.outcome.cause, Cause::Denied, "nothing that was wanted was done");
    let told = &answers(&events, "main")[0];
    assert!(told.contains("was not allowed to do what it wanted (denied)"), "{told}");
    assert!(told.contains("It gave this result all the same"), "{told}");
}

/// Runs a main agent that says this, beside an agent that is refused what it wants and one that is not.
async fn with_one_refused(main: impl IntoIterator<Item = Turn>) -> RunReport {
    let world = World::new();
    let model = Cast::new()
        .says("main", main)
        .says("refused", [hit("x"), done("nothing")])
        .says("fine", [Turn::call("echo", json!({ "word": "a" })), done("fine")])
        .model();
    let approver = ask_with(async |_| Answer::no());
    let agents = [agent("refused"), agent("fine")];
    let main = world.main(&model, agents, approver).build().unwrap();
    read(main.start("go")).await.1
}

/// Two agents of one answer, one of them refused: in which order they were called does not matter.
#[tokio::test]
async fn a_caller_of_agents_ends_the_same_whatever_the_order_of_their_calls() {
    for names in [["refused", "fine"], ["fine", "refused"]] {
        let both = ask(names[0], "x").and_call("delegate_to_agent", task(names[1], "x"));
        let report = with_one_refused([both, Turn::text("ok")]).await;
        assert_eq!(report.outcome.cause, Cause::Goal, "{names:?}");
        assert_eq!(report.refused.get("delegate_to_agent"), Some(&1), "{names:?}");
    }
}

/// Neither does it matter whether their caller waits for them.
#[tokio::test]
async fn a_caller_of_agents_in_the_background_ends_as_if_it_had_waited() {
    for (names, cause) in [
        (&["refused", "fine"][..], Cause::Goal),
        (&["fine", "refused"][..], Cause::Goal),
        (&["refused"][..], Cause::Denied),
    ] {
        let calls = names.iter().fold(Turn::empty(), |turn, name| {
            turn.and_call("delegate_to_agent", in_background(name, "x"))
        });
        let waits = (0..4).map(|_| Turn::text("ok"));
        let report = with_one_refused(std::iter::once(calls).chain(waits)).await;
        assert_eq!(report.outcome.cause, cause, "{names:?}");
    }
}
