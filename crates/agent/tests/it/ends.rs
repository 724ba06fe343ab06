//! How runs end when nothing goes wrong, and how they end when something does.

use std::sync::Arc;

use convoke_agent::{OutputSpec, replay};
use convoke_core::{Cause, EventBody, Message, Part, Role, RunId, Status, StopReason};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_model::{ModelError, ModelErrorKind};
use serde_json::json;

use crate::support::{durable, read, script, told, with};

#[tokio::test(start_paused = true)]
async fn a_task_goes_in_tools_work_and_an_answer_comes_out() {
    let model = script([
        Turn::text("Let me see. ").and_call("echo", json!({ "word": "a" })).tokens(100, 10),
        Turn::text("It said a.").tokens(150, 5),
    ]);
    let (events, report) = read(with(&model).build().unwrap().start("Say a.")).await;
    assert_eq!(
        told(&events),
        [
            "run_started",
            "turn_started",
            "model_request",
            "model_response",
            "tool_call_requested(call_1)",
            "policy_decision(call_1)",
            "tool_call_started(call_1)",
            "tool_call_completed(call_1)",
            "turn_ended",
            "turn_started",
            "model_request",
            "model_response",
            "turn_ended",
            "run_ended",
        ]
    );
    assert_eq!(report.outcome, Cause::Goal.into());
    assert_eq!(report.text().as_deref(), Some("It said a."));
    assert_eq!((report.usage.input_tokens, report.usage.output_tokens), (250, 15));
    assert_eq!((report.turns, report.tool_calls), (2, 1));
    let second = &model.requests()[1];
    assert_eq!(second.messages.len(), 3);
    let answer = Part::ToolResult {
        call: "call_1".into(),
        content: vec![Part::text("you said a")],
        is_error: false,
    };
    assert_eq!(second.messages[2], Message { role: Role::Tool, parts: vec![answer] });
    let done = report.task.unwrap().actions_done;
    assert_eq!((done.len(), done[0].tool_name.as_str(), done[0].success), (1, "echo", true));
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_run_at_the_same_time_and_answer_in_order() {
    let model = script([
        Turn::call("nap", json!({ "millis": 3000 }))
            .and_call("nap", json!({ "millis": 1000 }))
            .and_call("fail", json!({ "word": "x" })),
        Turn::text("done"),
    ]);
    let began = tokio::time::Instant::now();
    let (_, report) = read(with(&model).build().unwrap().start("Sleep.")).await;
    assert_eq!(began.elapsed().as_secs(), 3, "side by side, not one after the other");
    assert_eq!(report.outcome.cause, Cause::Goal);
    let answers = &model.requests()[1].messages[2];
    let said: Vec<(String, bool)> = answers
        .parts
        .iter()
        .map(|part| match part {
            Part::ToolResult { content, is_error, .. } => {
                (content[0].as_text().unwrap().to_owned(), *is_error)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(said[0], ("slept 3000".into(), false));
    assert_eq!(said[1], ("slept 1000".into(), false));
    assert_eq!(said[2], ("Error (failed): it always fails".into(), true));
}

#[tokio::test(start_paused = true)]
async fn a_shape_is_asked_for_until_it_is_right() {
    let schema = json!({
        "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"],
    });
    let output = OutputSpec { name: "report".into(), description: "How many.".into(), schema };
    let model = script([
        Turn::call("complete_task", json!({ "report": { "count": "three" } })),
        Turn::call("fail", json!({ "word": "x" }))
            .and_call("complete_task", json!({ "report": { "count": 3 } })),
        Turn::call("complete_task", json!({ "report": { "count": 3 } })),
    ]);
    let agent = with(&model).output(output).build().unwrap();
    let (_, report) = read(agent.start("Count.")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    assert_eq!(report.answer, Some(json!({ "count": 3 })));
    let requests = model.requests();
    let last = |turn: usize| format!("{:?}", requests[turn].messages.last().unwrap());
    assert!(last(1).contains("/count: "), "{}", last(1));
    assert!(last(2).contains("the call of `fail` beside this one failed"), "{}", last(2));
    assert_eq!(requests[0].tools.last().unwrap().name, "complete_task");
}

#[tokio::test(start_paused = true)]
async fn who_answers_in_words_is_told_how_to_hand_them_over() {
    let model = script([
        Turn::text("I think it is fine."),
        Turn::call("complete_task", json!({ "result": "fine" })),
    ]);
    let (_, report) = read(with(&model).completes_by_call().build().unwrap().start("Go.")).await;
    assert_eq!((report.outcome.cause, report.answer), (Cause::Goal, Some(json!("fine"))));
    let reminder = model.requests()[1].messages.last().unwrap().words();
    assert!(reminder.contains("call `complete_task` with your result"), "{reminder}");
    assert_eq!(model.requests()[1].tools.len(), model.requests()[0].tools.len());
}

/// gemini-cli 4.10: words in place of a completion are offered a last turn, and are handed over in it.
#[tokio::test(start_paused = true)]
async fn words_without_completing_get_one_chance_and_are_no_plain_success() {
    let model = script([
        Turn::text("I think it is fine."),
        Turn::text("I said that it is fine."),
        Turn::call("complete_task", json!({ "result": "fine" })),
    ]);
    let (events, report) =
        read(with(&model).completes_by_call().build().unwrap().start("Go.")).await;
    assert!(told(&events).contains(&"model_request:grace".to_owned()));
    assert_eq!(report.answer, Some(json!("fine")));
    assert_eq!(
        (report.outcome.status, report.outcome.cause, report.outcome.recovered),
        (Status::Stuck, Cause::NoCompletion, true)
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_that_cannot_be_reached_ends_the_run_and_says_why() {
    let error =
        ModelError::new(ModelErrorKind::Authentication, "openai", "wrong key").hint("set it");
    let model = script([Turn::error(error)]);
    let (events, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!(report.outcome.cause, Cause::ModelUnavailable);
    assert_eq!(report.outcome.message.as_deref(), Some("openai: wrong key (set it)"));
    assert_eq!(told(&events).last().unwrap(), "run_ended");
    assert_eq!(report.exit_code() as u8, 6);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_kept_as_what_it_is() {
    let cut = ModelError::new(ModelErrorKind::Cut, "openai", "the connection ended");
    let half = || Turn::text("The first half").and_error(cut.clone());
    let model = script([half(), half(), half()]);
    let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!((report.outcome.status, report.answer), (Status::Failed, None));
    assert_eq!(report.outcome.partial, Some(json!("The first half")));
}

/// What was said is replaced by what comes then; what it cost stays.
#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_asked_for_again() {
    let cut = ModelError::new(ModelErrorKind::Cut, "openai", "the connection ended");
    let model = script([
        Turn::text("The first half").and_error(cut),
        Turn::call("echo", json!({ "word": "x" })),
        Turn::text("All of it."),
    ]);
    let run = with(&model).build().unwrap().start_as(RunId::new("r"), "Go.");
    let (events, report) = read(run).await;
    assert_eq!(report.text().as_deref(), Some("All of it."), "{:?}", report.outcome);
    assert!(report.usage.estimated, "nobody said what the half cost");
    let reasons: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ModelRetry { reason, .. } => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, ["openai: the connection ended; what was said is replaced"]);
    assert_eq!(model.requests()[0].messages, model.requests()[1].messages);
    let replayed = replay(&RunId::new("r"), &durable(&events));
    assert!(replayed.is_ok(), "{}", replayed.unwrap_err());
}

/// A server of this machine that is started again is waited for, if it answered before.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_for_a_moment_is_waited_for() {
    let mut away = ModelError::new(ModelErrorKind::Unreachable, "ollama", "connection refused");
    (away.repeatable, away.not_running) = (false, true);
    let gone = || Turn::empty().and_error(away.clone());
    let echo = || Turn::call("echo", json!({ "word": "x" }));
    let model = script([echo(), gone(), gone(), gone(), Turn::text("back")]);
    let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!(report.text().as_deref(), Some("back"), "{:?}", report.outcome);
    let model = script([gone(), Turn::text("never asked")]);
    let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!(report.outcome.cause, Cause::ModelUnavailable, "it never was there");
    let model = script([echo(), gone(), gone(), gone(), gone(), gone()]);
    let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!(report.outcome.cause, Cause::ModelUnavailable, "not for ever");
    assert_eq!(model.requests().len(), 6);
    // What is wrong with a certificate stays wrong.
    let wrong = ModelError { not_running: false, ..away.clone() };
    let model = script([echo(), Turn::empty().and_error(wrong), Turn::text("never asked")]);
    let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!((report.outcome.cause, model.requests().len()), (Cause::ModelUnavailable, 2));
    for (retries, asked) in [(0, 2), (1, 3)] {
        let turns = [echo(), gone(), gone(), Turn::text("back")];
        let model = Arc::new(ScriptedModel::new(turns).with_retries(retries));
        let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
        assert_eq!(report.outcome.cause, Cause::ModelUnavailable, "as often as is wanted");
        assert_eq!(model.requests().len(), asked);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_a_failure() {
    let model = script([Turn::text("I will not.").stop(StopReason::Refused)]);
    let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!(report.outcome.cause, Cause::Error);
    assert!(report.outcome.message.unwrap().contains("I will not."));
}

#[tokio::test(start_paused = true)]
async fn calls_that_share_an_id_are_told_apart() {
    let same = |word: &str| {
        let call = convoke_core::ToolCall::new("x", "echo", json!({ "word": word }));
        Turn::empty().and_part(Part::ToolCall(call.clone())).and_part(Part::ToolCall(call))
    };
    let model = script([same("a"), same("b"), Turn::text("done")]);
    let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!((report.outcome.cause, report.tool_calls), (Cause::Goal, 4));
    let ids: Vec<String> = model.requests()[2]
        .messages
        .iter()
        .flat_map(Message::calls)
        .map(|call| call.id.to_string())
        .collect();
    assert_eq!(ids, ["x", "call_1_1", "call_2_0", "call_2_1"]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_answered_and_the_run_goes_on() {
    let model = script([Turn::call("ecko", json!({})), Turn::text("ok")]);
    let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    let answer = format!("{:?}", model.requests()[1].messages[2]);
    assert!(answer.contains("did you mean `echo`"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_report_in_json_says_what_was_done() {
    let model = script([Turn::call("echo", json!({ "word": "a" })), Turn::text("Done.")]);
    let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["task"]["goal"], "Go.");
    assert_eq!(json["task"]["actionsDone"][0]["toolName"], "echo", "{json}");
}
