//! Limits: told when they come near, kept when they are reached, with one last answer in reserve.

use std::sync::Arc;
use std::time::Duration;

use convoke_core::run::Budget;
use convoke_core::{Cause, Limit, Message, Millis, ModelFacts, Part, Price, Status};
use convoke_model::scripted::{ScriptedModel, Turn};
use serde_json::json;

use crate::support::{read, script, told, with};

fn again(word: usize) -> Turn {
    Turn::call("echo", json!({ "word": word.to_string() }))
}

fn price(output: &str) -> Price {
    Price {
        input: "1".parse().unwrap(),
        cached_input: None,
        cache_write: None,
        output: output.parse().unwrap(),
    }
}

/// gemini-cli 4.1 (#22323): an answer in the last turn says that it was the last.
#[tokio::test(start_paused = true)]
async fn the_last_turn_is_kept_for_an_answer_and_the_cause_stays() {
    let model = script([again(1), again(2), Turn::text("I got as far as 2.")]);
    let budget = Budget { turns: 3, ..Budget::default() };
    let (events, report) = read(with(&model).budget(budget).build().unwrap().start("Go.")).await;
    assert_eq!(report.text().as_deref(), Some("I got as far as 2."));
    assert_eq!(
        (report.outcome.status, report.outcome.cause, report.outcome.recovered),
        (Status::Limited, Cause::MaxTurns, true)
    );
    assert_eq!((report.turns, model.requests().len()), (3, 3));
    assert!(told(&events).contains(&"budget_exceeded".to_owned()));
    let last = &model.requests()[2];
    let notice = last.messages.last().unwrap().words();
    assert!(notice.contains("all turns but this one are used"), "{notice}");
    assert_eq!(last.tools, model.requests()[0].tools, "the declarations stay: caches hold");
}

/// gemini-cli 4.4 (#14088), 4.9: a call that was under way when time ran out has its result before the last
/// answer.
#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_stopped_in_time_for_a_last_answer() {
    let model = script([
        Turn::call("nap", json!({ "millis": 3_600_000 })),
        Turn::text("It was still asleep."),
    ]);
    let time_ms = Millis::new(Duration::from_mins(10));
    let budget = Budget { time_ms, ..Budget::default() };
    let began = tokio::time::Instant::now();
    let (_, report) = read(with(&model).budget(budget).build().unwrap().start("Go.")).await;
    assert_eq!((report.outcome.cause, report.outcome.recovered), (Cause::Timeout, true));
    let took = began.elapsed();
    assert!(took >= Duration::from_mins(9) && took < Duration::from_mins(10), "{took:?}");
    let answer = format!("{:?}", model.requests()[1].messages[2]);
    assert!(answer.contains("cancelled"), "the call was answered all the same: {answer}");
}

/// goose#9082, gemini-cli 4.19: a model that never answers is given up after the time of one turn.
#[tokio::test(start_paused = true)]
async fn a_silent_model_cannot_use_more_than_its_turn() {
    let model = script([Turn::wait(Duration::from_hours(5)).and_text("late"), Turn::text("sorry")]);
    let turn_time_ms = Millis::new(Duration::from_secs(20));
    let budget = Budget { turn_time_ms, ..Budget::default() };
    let began = tokio::time::Instant::now();
    let (_, report) = read(with(&model).budget(budget).build().unwrap().start("Go.")).await;
    assert_eq!((report.outcome.cause, report.outcome.recovered), (Cause::Timeout, true));
    assert_eq!(began.elapsed().as_secs(), 20);
}

/// codex#12487, #46023, #30842, gemini-cli 4.19: a limit of tokens stops a run before the call that would pass
/// it.
#[tokio::test(start_paused = true)]
async fn tokens_are_reserved_before_they_are_used_and_there_is_no_grace_beyond_them() {
    let model = script([again(1).tokens(900, 100), again(2).tokens(1_900, 100), Turn::text("no")]);
    let budget = Budget { tokens: Some(4_000), ..Budget::default() };
    let (_, report) = read(with(&model).budget(budget).build().unwrap().start("Go.")).await;
    assert_eq!((report.outcome.cause, report.outcome.recovered), (Cause::MaxTokens, false));
    assert_eq!(model.requests().len(), 2, "a third would have passed the limit");
    let reserved = model.requests()[1].max_output_tokens.unwrap();
    assert!(reserved < 2_000, "the answer may use only what is left: {reserved}");
}

#[tokio::test(start_paused = true)]
async fn money_is_exact_and_an_unknown_price_is_refused() {
    let model = Arc::new(
        ScriptedModel::new([again(1).tokens(1_000, 100), Turn::text("done").tokens(2_000, 100)])
            .with_facts(ModelFacts { price: Some(price("10")), ..ModelFacts::default() }),
    );
    let cost = Some("0.02".parse().unwrap());
    let budget = Budget { cost, ..Budget::default() };
    let (_, report) = read(with(&model).budget(budget.clone()).build().unwrap().start("Go.")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    assert_eq!(report.usage.cost.unwrap().to_string(), "$0.005");
    let free = script([Turn::text("hi")]);
    let error = with(&free).budget(budget).build().unwrap_err();
    assert!(error.to_string().contains("no price is known"), "{error}");
}

/// gemini-cli 4.4, 4.19: calls of tools have a limit as well, and each call beyond it has an answer.
#[tokio::test(start_paused = true)]
async fn calls_beyond_the_limit_are_answered_without_being_run() {
    let three = Turn::call("echo", json!({ "word": "a" }))
        .and_call("echo", json!({ "word": "b" }))
        .and_call("echo", json!({ "word": "c" }));
    let model = script([three, Turn::text("two of three")]);
    let budget = Budget { tool_calls: Some(2), ..Budget::default() };
    let (events, report) = read(with(&model).budget(budget).build().unwrap().start("Go.")).await;
    assert_eq!((report.outcome.cause, report.tool_calls), (Cause::MaxToolCalls, 2));
    assert!(report.outcome.recovered);
    assert!(told(&events).contains(&"tool_call_denied(call_3)".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_model_is_told_before_a_limit_is_reached() {
    let turns = (0..9).map(again).chain([Turn::text("done")]);
    let model = script(turns);
    let budget = Budget { turns: 12, ..Budget::default() };
    let (events, report) = read(with(&model).budget(budget).build().unwrap().start("Go.")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    assert!(!told(&events).contains(&"budget_warning".to_owned()), "8 of 12 are not 80 %");
    let model = script((0..10).map(again).chain([Turn::text("done")]));
    let budget = Budget { turns: 12, ..Budget::default() };
    let (events, _) = read(with(&model).budget(budget).build().unwrap().start("Go.")).await;
    assert_eq!(told(&events).iter().filter(|word| *word == "budget_warning").count(), 1);
    let said = model.requests()[10]
        .messages
        .iter()
        .any(|message| message.words().contains("83 % of your turns are used"));
    assert!(said, "the model is told: {:?}", model.requests()[10].messages.last());
    assert_eq!(Limit::Turns.cause(), Cause::MaxTurns);
}

/// gemini-cli 4.4 (#14088), 4.9: every call has its result before the last answer is asked for, and a tool that
/// is called in place of it does not run.
#[tokio::test(start_paused = true)]
async fn the_last_turn_comes_after_all_results_and_runs_no_tool() {
    let model = script([again(1), again(2).and_call("echo", json!({ "word": "too" })), again(3)]);
    let budget = Budget { turns: 3, ..Budget::default() };
    let (events, report) = read(with(&model).budget(budget).build().unwrap().start("Go.")).await;
    assert_eq!((report.outcome.cause, report.outcome.recovered), (Cause::MaxTurns, false));
    let last = &model.requests()[2].messages;
    let parts = last.iter().flat_map(|message| &message.parts);
    let results = parts.filter(|part| matches!(part, Part::ToolResult { .. })).count();
    assert_eq!((last.iter().flat_map(Message::calls).count(), results), (3, 3));
    let told = told(&events);
    let count = |start: &str| told.iter().filter(|word| word.starts_with(start)).count();
    assert_eq!((count("tool_call_started"), count("tool_call_denied")), (3, 1), "{told:?}");
}
