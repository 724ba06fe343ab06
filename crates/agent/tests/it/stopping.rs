//! Stopping a run from outside, at every place it can be at.

use std::time::Duration;

use convoke_agent::NotHeard;
use convoke_core::{Cause, EventBody, Status};
use convoke_model::scripted::Turn;
use futures_util::StreamExt;
use serde_json::json;

use crate::support::{read, script, told, with};

#[tokio::test(start_paused = true)]
async fn stopping_while_the_model_speaks_keeps_what_it_said() {
    let model = script([Turn::text("half a ").and_wait(Duration::from_hours(1)).and_text("word")]);
    let mut run = with(&model).build().unwrap().start("Go.");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        if matches!(event.body, EventBody::ModelDelta { .. }) {
            run.handle().cancel();
        }
        events.push(event);
    }
    let report = run.report().unwrap();
    assert_eq!(
        (report.outcome.status, report.outcome.cause),
        (Status::Cancelled, Cause::Interrupted)
    );
    assert_eq!(report.outcome.partial, Some(json!("half a ")));
    assert_eq!(told(&events).last().unwrap(), "run_ended");
}

/// goose#7914, #1624, #33: no call is left without a result by an interruption.
#[tokio::test(start_paused = true)]
async fn stopping_while_tools_work_answers_every_call() {
    let model = script([Turn::call("nap", json!({ "millis": 9_000_000 }))
        .and_call("echo", json!({ "word": "a" }))
        .and_call("nap", json!({ "millis": 8_000_000 }))]);
    let mut run = with(&model).build().unwrap().start("Go.");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        if matches!(&event.body, EventBody::ToolCallCompleted { .. }) {
            run.handle().cancel_because(Cause::Terminated);
        }
        events.push(event);
    }
    let report = run.report().unwrap();
    assert_eq!(report.exit_code() as u8, 143);
    let ends = events.iter().filter(|event| event.body.ends_call()).count();
    assert_eq!(ends, 3, "{:?}", told(&events));
    assert_eq!(report.tool_calls, 3);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_stopped_before_it_begins_asks_nobody() {
    let model = script([Turn::text("hello")]);
    let run = with(&model).build().unwrap().start("Go.");
    run.handle().cancel();
    let (_, report) = read(run).await;
    assert_eq!(report.outcome.cause, Cause::Interrupted);
    assert!(model.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_the_user_says_meanwhile_enters_at_the_next_turn() {
    let model = script([
        Turn::call("nap", json!({ "millis": 1000 })),
        Turn::text("one").and_wait(Duration::from_secs(1)),
        Turn::text("two"),
    ]);
    let mut run = with(&model).build().unwrap().start("Go.");
    let mut said = 0;
    while let Some(event) = run.next().await {
        match event.body {
            EventBody::ToolCallStarted { .. } => run.handle().say("And hurry.").unwrap(),
            EventBody::ModelDelta { .. } if said == 0 => {
                said += 1;
                run.handle().say("One more thing.").unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(run.report().unwrap().text().as_deref(), Some("two"));
    assert_eq!(run.handle().say("Still there?"), Err(NotHeard::Ended));
    let requests = model.requests();
    assert_eq!(requests[1].messages.last().unwrap().words(), "And hurry.");
    assert_eq!(requests[2].messages.last().unwrap().words(), "One more thing.");
}
