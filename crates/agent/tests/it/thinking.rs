//! Planning, looking back, and making a long conversation short.

use std::sync::Arc;

use convoke_agent::AgentExecutor;
use convoke_core::event::Verdict;
use convoke_core::{Cause, EventBody, Kind, ModelFacts, ReflectionMode, Role, Strategy};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_model::{ModelError, ModelErrorKind};
use convoke_tool::testing::AllowAll;
use convoke_tool::{FunctionTool, Roots, ToolContext, ToolExecutor, ToolRegistry, ToolView};
use serde_json::json;

use crate::support::{Word, read, script, told, with};

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

/// gemini-cli 4.7: no call is cut off from its result.
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

/// codex#40619, #7232: summing up never makes a conversation longer.
#[tokio::test(start_paused = true)]
async fn summary_that_is_not_shorter_is_refused_and_the_oldest_part_dropped() {
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
    let dropped = events.iter().find_map(|event| match &event.body {
        EventBody::Compaction { before, after, summary, .. } => Some((*before, *after, summary)),
        _ => None,
    });
    let (before, after, summary) = dropped.unwrap();
    assert!(after < before && after <= 8_000, "{before} {after}");
    assert!(summary.as_ref().unwrap().contains("there is no summary of it"), "{summary:?}");
    let last = &model.requests()[3];
    let roles: Vec<Role> = last.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::User, Role::Assistant, Role::Tool]);
    let sent = last.messages.iter().map(convoke_core::run::estimate).sum::<u64>();
    assert!(sent <= after, "{sent} {after}");
}

/// gemini-cli 4.7 (#7784, #22942): summing up works where it is needed most, after the model refused.
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

/// A model that answers every request for a summary with nothing, or with a call.
#[tokio::test(start_paused = true)]
async fn summaries_that_never_come_leave_every_request_within_the_window() {
    const WINDOW: u64 = 8_000;
    let model = Arc::new(
        ScriptedModel::from_fn(|request: &convoke_model::RequestSnapshot| {
            let asked = format!("{:?}", request.messages.last());
            if asked.contains("Tool") || request.messages.len() == 1 {
                let word = format!("{}{}", request.messages.len(), "x".repeat(5_000));
                return Turn::call("echo", json!({ "word": word }));
            }
            Turn::call("echo", json!({ "word": "no summary" }))
        })
        .with_facts(ModelFacts { window: Some(WINDOW), ..ModelFacts::default() }),
    );
    let budget = convoke_core::run::Budget { turns: 12, ..Default::default() };
    let (events, _) = read(with(&model).budget(budget).build().unwrap().start("Go.")).await;
    for request in model.requests() {
        let sent = request.messages.iter().map(convoke_core::run::estimate).sum::<u64>();
        assert!(sent <= WINDOW, "{sent}");
    }
    let mut compactions = 0;
    for event in &events {
        if let EventBody::Compaction { before, after, summary, .. } = &event.body {
            compactions += 1;
            assert!(summary.is_some() && after < before, "{before} {after}");
        }
    }
    assert!((2..=11).contains(&compactions), "{compactions}");
}

/// gemini-cli 4.7 (#7784, #22942, #19590): a summary that cannot be had is the end, with the reason, and is not asked
/// for again and again.
#[tokio::test(start_paused = true)]
async fn a_summary_that_cannot_be_had_ends_the_run_with_the_reason() {
    let too_long = || ModelError::new(ModelErrorKind::ContextTooLong, "openai", "too many tokens");
    let say = |word: &str| Turn::call("echo", json!({ "word": word.repeat(2_000) }));
    let refusals = (0..20).map(|_| Turn::error(too_long()));
    let model = script([say("a"), say("b")].into_iter().chain(refusals));
    let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!(report.outcome.cause, Cause::ContextWindow);
    let asked = model.requests().len();
    assert_eq!(
        asked, 6,
        "the turn and its summary, and both again when the oldest part was dropped"
    );
}

/// codex#13279, #35226, #36665: which files were read is known after the conversation was summed up, whatever the
/// summary says.
#[tokio::test(start_paused = true)]
async fn files_stay_known_when_a_conversation_is_summed_up() {
    let directory = tempfile::tempdir().unwrap();
    let registry = ToolRegistry::new();
    let look = FunctionTool::new("look", "Looks.", async |_: Word, _: ToolContext| {
        Ok::<_, String>("x".repeat(12_000))
    });
    registry.register(look.kind(Kind::Read).reads("word")).unwrap();
    let roots = Roots::open([directory.path()]).unwrap();
    let context = ToolContext::builder("t").roots(roots).build();
    let tools = ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll);
    let look = |name: &str| Turn::call("look", json!({ "word": directory.path().join(name) }));
    let facts = ModelFacts { window: Some(8_000), ..ModelFacts::default() };
    let turns = [look("a.txt"), look("b.txt"), Turn::text("I forgot."), Turn::text("done")];
    let model = Arc::new(ScriptedModel::new(turns).with_facts(facts));
    let agent = AgentExecutor::with_model(model.clone(), tools).build().unwrap();
    let (_, report) = read(agent.start("Look at both.")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    let summed_up = model.requests()[3].messages[1].words();
    for part in ["I forgot.", "Files read so far: ", "a.txt", "b.txt"] {
        assert!(summed_up.contains(part), "{part}: {summed_up}");
    }
}
