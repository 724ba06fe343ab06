//! Planning, looking back, and making a long conversation short.

use std::sync::Arc;

use convoke_core::event::Verdict;
use convoke_core::{Cause, EventBody, ModelFacts, ReflectionMode, Role, Strategy};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_model::{ModelError, ModelErrorKind};
use serde_json::json;

use crate::support::{read, script, told, with};

#[tokio::test(start_paused = true)]
async fn a_plan_comes_first_and_failures_are_looked_back_at() {
    let plan = json!({ "steps": [
        { "id": "look", "actionType": "tool_call", "tool": "echo", "params": "see what it says" },
        { "id": "answer", "actionType": "respond", "dependsOn": ["look"] },
    ] });
    let verdict = json!({
        "verdict": "replan", "assessment": "That cannot work.", "lessons": ["use echo"],
        "toolFailures": [{ "toolName": "fail", "error": "it always fails" }],
    });
    let second = json!({ "steps": [{ "id": "echo", "actionType": "tool_call", "tool": "echo" }] });
    let model = script([
        Turn::text(plan.to_string()),
        Turn::call("fail", json!({ "word": "x" })),
        Turn::text(verdict.to_string()),
        Turn::text(second.to_string()),
        Turn::call("echo", json!({ "word": "x" })),
        Turn::text("done"),
    ]);
    let agent = with(&model).strategy(Strategy::Planned).build().unwrap();
    let (events, report) = read(agent.start("Go.")).await;
    let asked: Vec<String> =
        told(&events).into_iter().filter(|word| word.starts_with("model_request")).collect();
    assert_eq!(
        asked,
        [
            "model_request:plan",
            "model_request",
            "model_request:reflect",
            "model_request:plan",
            "model_request",
            "model_request"
        ]
    );
    assert_eq!(report.outcome.cause, Cause::Goal);
    let task = report.task.unwrap();
    assert_eq!(task.plan[0].id, "echo");
    assert_eq!(task.reflections[0].verdict, Verdict::Replan);
    assert_eq!(task.reflections[0].tool_failures[0].tool_name, "fail");
    let requests = model.requests();
    let first = requests[1].messages.last().unwrap().words();
    assert!(first.contains("1. look: `echo`: see what it says"), "{first}");
    let after = requests[4].messages.last().unwrap().words();
    assert!(after.contains("That cannot work.") && after.contains("- use echo"), "{after}");
    assert_eq!(report.turns, 3, "planning and looking back are no turns");
}

#[tokio::test(start_paused = true)]
async fn looking_back_can_accept_what_there_is() {
    let verdict = json!({ "verdict": "complete", "assessment": "Good enough." });
    let model = script([
        Turn::call("fail", json!({ "word": "x" })),
        Turn::text(verdict.to_string()),
        Turn::text("It is done as far as it goes."),
    ]);
    let agent = with(&model).reflection(ReflectionMode::OnFailure).build().unwrap();
    let (_, report) = read(agent.start("Go.")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    assert_eq!(report.text().as_deref(), Some("It is done as far as it goes."));
}

#[tokio::test(start_paused = true)]
async fn a_long_conversation_is_summed_up_between_complete_groups() {
    let long = |word: &str| Turn::call("echo", json!({ "word": word.repeat(6_000) }));
    let model = Arc::new(
        ScriptedModel::new([
            long("a"),
            long("b"),
            Turn::text("Summary: a and b were said."),
            Turn::text("done"),
        ])
        .with_facts(ModelFacts { window: Some(8_000), ..ModelFacts::default() }),
    );
    let (events, report) = read(with(&model).build().unwrap().start("Say a and b.")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    let compacted = events.iter().find_map(|event| match &event.body {
        EventBody::Compaction { before, after, summary, .. } => {
            Some((*before, *after, summary.clone()))
        }
        _ => None,
    });
    let (before, after, summary) = compacted.unwrap();
    assert!(after < before && summary.unwrap().contains("a and b were said"));
    let last = &model.requests()[3];
    let roles: Vec<Role> = last.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(last.messages[0].words(), "Say a and b.", "the task stays");
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_is_not_shorter_is_refused() {
    let long = |word: &str| Turn::call("echo", json!({ "word": word.repeat(6_000) }));
    let model = Arc::new(
        ScriptedModel::new([
            long("a"),
            long("b"),
            Turn::text("x".repeat(90_000)),
            Turn::text("ok"),
        ])
        .with_facts(ModelFacts { window: Some(8_000), ..ModelFacts::default() }),
    );
    let (events, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    let refused = events
        .iter()
        .any(|event| matches!(&event.body, EventBody::Compaction { summary: None, .. }));
    assert!(refused);
    assert_eq!(model.requests()[3].messages.len(), 5, "nothing was removed");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_too_long_for_the_model_is_summed_up_and_asked_again() {
    let too_long = || ModelError::new(ModelErrorKind::ContextTooLong, "openai", "too many tokens");
    let say = |word: &str| Turn::call("echo", json!({ "word": word.repeat(2_000) }));
    let model =
        script([say("a"), say("b"), Turn::error(too_long()), Turn::text("a, b"), Turn::text("ok")]);
    let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    assert_eq!(report.turns, 3, "the turn was asked again");
    let never = script([Turn::error(too_long())]);
    let (_, report) = read(with(&never).build().unwrap().start("Go.")).await;
    assert_eq!((report.outcome.cause, report.exit_code() as u8), (Cause::ContextWindow, 4));
}
