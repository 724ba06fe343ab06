#![expect(clippy::needless_pass_by_value, reason = "`json!` reads best where it is given away")]

use std::sync::Arc;

use convoke::Runtime;
use convoke::config::Timeout;
use convoke_core::{Event, ToolCall};
use convoke_tool::{Answer, MemorySink, Recorder, SystemClock, ask_with};
use serde_json::{Value, json};

use super::*;

fn event(ts: i64, run: &str, agent: &str, call: Option<&str>, kind: &str, data: Value) -> Event {
    let mut event = json!({ "v": 1, "seq": 1, "ts": ts, "run": run, "agent": agent, "type": kind, "data": data });
    if let Some(call) = call {
        event["call"] = call.into();
    }
    serde_json::from_value(event).unwrap()
}

fn main(ts: i64, call: Option<&str>, kind: &str, data: Value) -> Event {
    event(ts, "r", "main", call, kind, data)
}

fn response(tokens: u64, cost: Option<&str>) -> Value {
    json!({
        "purpose": "main", "stop": "done", "message": { "role": "assistant", "parts": [] },
        "usage": { "inputTokens": tokens, "outputTokens": 0, "cost": cost },
    })
}

/// What is written there is read here.
#[tokio::test]
async fn a_question_that_nobody_answered_in_time_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = convoke::config::Config::default();
    config.policy.approval_timeout = Timeout::from_millis(1);
    let runtime = Runtime::builder(directory.path()).config(config).build().unwrap();
    let (sink, clock) = (Arc::new(MemorySink::default()), Arc::new(SystemClock));
    let nobody = ask_with(|_| std::future::pending::<Answer>());
    let recorder = Recorder::new("r", sink.clone(), clock);
    let executor = runtime.executor().approver(nobody).recorder(recorder).build();
    let arguments = json!({ "path": "a.txt", "content": "x" });
    executor.execute(ToolCall::new("c", "write_file", arguments)).await;
    let mut tree = Tree::default();
    for event in sink.events() {
        tree.fold(&event);
    }
    assert_eq!((tree.totals().unanswered, tree.totals().denied), (1, 1));
}

#[test]
fn a_call_goes_from_waiting_over_asking_to_running_and_is_gone_when_it_ends() {
    let mut tree = Tree::default();
    let state = |tree: &Tree| tree.agents()[0].calls.first().map(|call| call.state);
    let tool = json!({ "toolName": "x" });
    tree.fold(&main(0, Some("c"), "tool_call_requested", json!({ "toolName": "x", "params": {} })));
    assert_eq!(state(&tree), Some(CallState::Waiting));
    tree.fold(&main(
        1,
        Some("c"),
        "approval_asked",
        json!({
            "toolName": "x", "kind": "edit", "description": "", "reason": "",
        }),
    ));
    assert_eq!(state(&tree), Some(CallState::Asking));
    tree.fold(&main(
        2,
        Some("c"),
        "approval_answered",
        json!({ "toolName": "x", "approved": true }),
    ));
    tree.fold(&main(
        3,
        Some("c"),
        "tool_call_started",
        json!({
            "toolName": "x", "description": "", "effects": {},
        }),
    ));
    assert_eq!(state(&tree), Some(CallState::Running));
    assert_eq!(
        tree.agents()[0].calls[0].lasts(Timestamp::from_millis(13)),
        Duration::from_millis(10)
    );
    let mut completed = tool;
    completed["result"] = json!(1);
    completed["durationMs"] = json!(10);
    let told = tree.fold(&main(13, Some("c"), "tool_call_completed", completed));
    assert!(matches!(&told[..], [Entry { said: Said::Call(CallEnd { end: End::Ok, .. }), .. }]));
    assert_eq!(state(&tree), None);
    assert_eq!(tree.totals().tool_calls, 1);
}

#[test]
fn of_several_steps_the_last_is_shown() {
    let mut tree = Tree::default();
    tree.fold(&main(0, Some("c"), "tool_call_requested", json!({ "toolName": "x", "params": {} })));
    for (text, fraction) in [("step 1 of ten", 0.1), ("step 2 of ten", 0.2)] {
        let data = json!({ "toolName": "x", "text": text, "fraction": fraction });
        tree.fold(&main(1, Some("c"), "tool_call_progress", data));
    }
    assert_eq!(tree.agents()[0].calls[0].tail.line(80), "step 2 of ten");
}

#[test]
fn usage_of_all_agents_adds_up_and_an_unknown_price_stays_unknown() {
    let mut tree = Tree::default();
    tree.fold(&main(0, None, "model_response", response(10, Some("0.1"))));
    tree.fold(&event(1, "k", "main/kid", None, "model_response", response(5, Some("0.2"))));
    assert_eq!(tree.totals().usage.input_tokens, 15);
    assert_eq!(tree.totals().usage.cost, Some("0.3".parse().unwrap()));
    tree.fold(&main(2, None, "model_response", response(1, None)));
    assert_eq!(tree.totals().usage.cost, None);
}

#[test]
fn a_run_that_went_on_after_a_restart_has_used_what_it_says() {
    let mut tree = Tree::default();
    tree.fold(&main(0, None, "model_response", response(10, None)));
    tree.fold(&main(0, None, "usage", json!({ "inputTokens": 500, "outputTokens": 1 })));
    assert_eq!(tree.totals().usage.input_tokens, 500);
    tree.fold(&main(0, None, "usage", json!({ "inputTokens": 3, "outputTokens": 1 })));
    assert_eq!(tree.totals().usage.input_tokens, 500);
}

#[test]
fn agents_of_the_same_name_are_told_apart() {
    let mut tree = Tree::default();
    tree.fold(&main(0, None, "turn_started", json!({ "turn": 1 })));
    for run in ["a", "b"] {
        tree.fold(&event(0, run, "main/kid", None, "turn_started", json!({ "turn": 1 })));
    }
    let labels: Vec<_> = tree.agents().iter().map(|agent| agent.who.label.clone()).collect();
    assert_eq!(labels, ["main", "kid", "kid 2"]);
    let outcome = json!({ "status": "completed", "cause": "goal" });
    let ended = json!({ "child": "a", "outcome": outcome, "usage": { "inputTokens": 1, "outputTokens": 1 } });
    assert_eq!(tree.fold(&main(9, None, "agent_ended", ended.clone())).len(), 1);
    assert_eq!(tree.agents().len(), 2);
    assert!(tree.fold(&main(9, None, "agent_ended", ended)).is_empty(), "it ends once");
}

#[test]
fn a_long_run_takes_no_more_memory_than_a_short_one() {
    let mut tree = Tree::default();
    for turn in 0..2000 {
        let call = format!("c{turn}");
        tree.fold(&main(turn, None, "turn_started", json!({ "turn": turn })));
        tree.fold(&main(turn, None, "model_delta", json!({ "text": "word ".repeat(50) })));
        tree.fold(&main(
            turn,
            Some(&call),
            "tool_call_requested",
            json!({
                "toolName": "x", "params": { "path": "y".repeat(10_000) },
            }),
        ));
        assert!(tree.agents()[0].calls[0].summary.len() <= 100);
        tree.fold(&main(
            turn,
            Some(&call),
            "tool_call_completed",
            json!({
                "toolName": "x", "result": 1, "durationMs": 1,
            }),
        ));
        let run = format!("k{turn}");
        tree.fold(&event(
            turn,
            &run,
            &format!("main/n{turn}"),
            None,
            "turn_started",
            json!({ "turn": 1 }),
        ));
        tree.fold(&event(
            turn,
            &run,
            "main/n",
            None,
            "run_ended",
            json!({
                "outcome": { "status": "failed", "cause": "error" },
                "usage": { "inputTokens": 1, "outputTokens": 1 },
            }),
        ));
    }
    assert_eq!((tree.agents().len(), tree.names.len()), (1, MAX_NAMES));
    assert!(tree.agents()[0].calls.is_empty());
    assert!(tree.agents()[0].activity.tail().unwrap().line(5000).len() <= 1024 + 3);
}

#[test]
fn a_retry_counts_down() {
    let mut tree = Tree::default();
    let told = tree.fold(&main(
        1000,
        None,
        "model_retry",
        json!({
            "attempt": 2, "delayMs": 3000, "reason": "overloaded",
        }),
    ));
    assert_eq!(told[0].weight, Weight::Passing);
    let words = |now| tree.agents()[0].activity.words(Timestamp::from_millis(now)).unwrap();
    assert_eq!(words(1000), "asked again in 3 s: overloaded (attempt 2)");
    assert_eq!(words(2500), "asked again in 2 s: overloaded (attempt 2)");
    assert_eq!(words(9000), "asked again in 0 s: overloaded (attempt 2)");
}

#[test]
fn an_agent_that_waits_for_budget_says_so() {
    let mut tree = Tree::default();
    let told = tree.fold(&main(1000, None, "budget_awaited", json!({ "tokens": 9000 })));
    assert_eq!(told[0].weight, Weight::Passing);
    let words = |tree: &Tree| tree.agents()[0].activity.words(Timestamp::from_millis(1000));
    assert_eq!(words(&tree).unwrap(), "waiting for budget that other agents hold");
    tree.fold(&main(2000, None, "model_request", json!({ "model": "m", "purpose": "main" })));
    assert_eq!(words(&tree).unwrap(), "waiting for the model");
}

#[test]
fn a_run_that_is_taken_up_again_is_counted_from_there() {
    let used = |tokens, cost: &str| Usage {
        input_tokens: tokens,
        cost: cost.parse().ok(),
        ..Usage::default()
    };
    let before = Before { turns: 4, usage: used(1_000, "0.10"), budget: Budget::default() };
    let mut tree = Tree::after(before.clone());
    tree.fold(&main(0, None, "turn_started", json!({ "turn": 5 })));
    tree.fold(&main(1, None, "model_response", response(200, Some("0.02"))));
    tree.fold(&main(2, None, "usage", json!(used(1_200, "0.12"))));
    assert_eq!((tree.totals().turns, tree.totals().usage), (1, used(200, "0.02")));

    let unpriced = Usage { cost: None, ..before.usage };
    let mut tree = Tree::after(Before { usage: unpriced, ..before });
    tree.fold(&main(2, None, "usage", json!(used(1_200, "0.12"))));
    assert_eq!(tree.totals().usage.cost, None, "what one message cost is not known");
}

/// An agent that was stopped says so itself, once.
#[test]
fn the_call_of_an_agent_that_was_stopped_is_a_detail() {
    let mut tree = Tree::default();
    let deferred =
        json!({ "toolName": "x", "reason": "the agent `worker` was stopped with the run" });
    for (is_agent, weight) in [(true, Weight::Detail), (false, Weight::Usual)] {
        let call = Some(if is_agent { "a" } else { "b" });
        let requested = json!({ "toolName": "x", "params": {} });
        tree.fold(&main(0, call, "tool_call_requested", requested));
        if is_agent {
            let spawned = json!({ "child": "r-a", "name": "worker" });
            tree.fold(&main(1, call, "agent_spawned", spawned));
        }
        let told = tree.fold(&main(2, call, "tool_call_deferred", deferred.clone()));
        assert_eq!(told[0].weight, weight, "{told:?}");
    }
}

/// What an agent that goes on used is told for all its parts, and so is how long it took.
#[test]
fn an_agent_that_goes_on_is_told_of_as_one() {
    let mut tree = Tree::default();
    tree.fold(&main(0, None, "turn_started", json!({ "turn": 1 })));
    let worker = |ts, kind, data| event(ts, "r-a", "main/worker", None, kind, data);
    let end = |ts| {
        let usage = json!({ "inputTokens": 10, "outputTokens": 1 });
        let outcome = json!({ "status": "completed", "cause": "goal" });
        worker(ts, "run_ended", json!({ "outcome": outcome, "usage": usage }))
    };
    tree.fold(&worker(100, "turn_started", json!({ "turn": 1 })));
    tree.fold(&end(1_100));
    tree.fold(&worker(5_000, "run_resumed", json!({})));
    let more =
        json!({ "message": { "role": "user", "parts": [{ "type": "text", "text": "more" }] } });
    let told = tree.fold(&worker(5_000, "user_message", more));
    assert_eq!(told[0].said, Said::Note("goes on: more".to_owned()));
    tree.fold(&worker(5_000, "turn_started", json!({ "turn": 2 })));
    tree.fold(&end(5_022));
    let [agent] = tree.totals().agents.as_slice() else { panic!("{:?}", tree.totals().agents) };
    assert_eq!((agent.turns, agent.duration_ms.get()), (2, Duration::from_millis(1_022)));
}

#[test]
fn a_pause_is_not_counted_as_time() {
    let mut tree = Tree::default();
    tree.fold(&main(1_000, None, "turn_started", json!({ "turn": 1 })));
    tree.fold(&main(1_500, None, "turn_ended", json!({ "turn": 1 })));
    tree.fold(&main(900_000, None, "run_resumed", json!({})));
    tree.fold(&main(900_250, None, "turn_started", json!({ "turn": 2 })));
    let totals = tree.totals();
    assert_eq!(totals.elapsed(totals.latest), Duration::from_millis(750));

    // Nor is what passed before a run was copied.
    let mut tree = Tree::default();
    tree.fold(&main(1_000, None, "turn_started", json!({ "turn": 1 })));
    tree.fold(&main(1_500, None, "turn_ended", json!({ "turn": 1 })));
    tree.fold(&main(900_000, None, "run_forked", json!({ "from": "other", "at": 2 })));
    tree.fold(&main(900_010, None, "run_resumed", json!({})));
    tree.fold(&main(900_200, None, "turn_started", json!({ "turn": 2 })));
    let totals = tree.totals();
    assert_eq!(totals.elapsed(totals.latest), Duration::from_millis(690));
}
