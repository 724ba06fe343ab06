//! How a run ends: the last answer, limits, and what is left for it.

use serde_json::json;

use super::{Left, Whim, World, asking_for, calling, outcome_of, plain, with_turns};
use crate::event::EventBody;
use crate::id::RunId;
use crate::message::ToolCall;
use crate::outcome::Cause;
use crate::run::{Effect, Ending, Limit, Purpose, Run, RunSettings, Told};
use crate::time::Timestamp;
use crate::usage::{Price, Usage};

#[test]
fn what_is_answered_in_the_last_turn_is_recovered() {
    let (world, outcome) = outcome_of(with_turns(2), vec![calling(), plain()]);
    assert_eq!((outcome.cause, outcome.recovered), (Cause::MaxTurns, true));
    assert!(world.ended_with_answer());
    let (_, outcome) = outcome_of(with_turns(3), vec![calling(), plain()]);
    assert_eq!((outcome.cause, outcome.recovered), (Cause::Goal, false));
}

#[test]
fn a_call_that_was_cut_off_is_not_run() {
    let cut = Whim { stop: 0, ..calling() };
    let (world, outcome) = outcome_of(with_turns(9), vec![cut, plain()]);
    assert_eq!((outcome.cause, world.run.tool_calls()), (Cause::Goal, 0));
    world.check_answers();
}

#[test]
fn an_answer_in_pieces_is_put_together() {
    let cut = |tokens| Whim { stop: 0, tokens: (tokens, 10), ..plain() };
    let end = Whim { tokens: (3, 10), ..plain() };
    let (world, outcome) = outcome_of(with_turns(9), vec![cut(1), cut(2), end]);
    assert_eq!(outcome.cause, Cause::Goal);
    assert_eq!(world.run.answer(), Some(&json!("words 1words 2words 3")));
    let (_, outcome) = outcome_of(with_turns(30), vec![cut(1); 30]);
    assert_eq!(outcome.cause, Cause::Loop, "the same piece again and again is a loop");
}

#[test]
fn a_refusal_of_the_last_answer_does_not_hide_why_it_was_the_last() {
    let refuses = Whim { stop: 1, words: false, ..plain() };
    let (_, outcome) = outcome_of(with_turns(2), vec![calling(), refuses]);
    assert_eq!((outcome.cause, outcome.recovered), (Cause::MaxTurns, false));
}

/// Bug: a last answer that others left nothing for, or nothing in time, was asked for again without end.
#[test]
fn a_last_answer_that_nothing_is_left_for_is_asked_for_once() {
    let exceeded = |world: &World| -> Vec<Limit> {
        let limits = world.events.iter().filter_map(|event| match event.body {
            EventBody::BudgetExceeded { budget, .. } => Some(budget),
            _ => None,
        });
        limits.collect()
    };
    for (left, limit) in [(Left::TooLittle, Limit::Tokens), (Left::NotInTime, Limit::Time)] {
        let none = Whim { left, ..plain() };
        let (world, outcome) = outcome_of(with_turns(2), vec![calling(), none.clone(), none]);
        assert_eq!((outcome.cause, outcome.recovered), (Cause::MaxTurns, false), "{left:?}");
        assert_eq!(exceeded(&world), [Limit::Turns, limit], "what came first says how it ends");
    }
    let late = Whim { left: Left::NotInTime, ..plain() };
    let (world, outcome) = outcome_of(with_turns(9), vec![calling(), late.clone(), plain()]);
    assert_eq!(
        (outcome.cause, outcome.recovered),
        (Cause::Timeout, true),
        "there is a last answer"
    );
    assert_eq!(exceeded(&world), [Limit::Time]);
}

/// What is kept for a last answer is not over when the time for work is.
#[test]
fn a_last_answer_has_time_of_its_own() {
    let mut world = World::new(with_turns(9), vec![plain()]);
    let budget = world.run.settings().budget.clone();
    world.now = world.now.after(budget.working_time());
    let left = |purpose| world.run.time_left_for(purpose, world.now).unwrap();
    assert!(left(Purpose::Main).is_zero());
    assert_eq!(left(Purpose::Grace) + budget.working_time(), budget.time_ms.get());
}

/// Bug: who waited to ask again until the time was up asked again all the same.
#[test]
fn what_broke_off_is_not_asked_for_again_when_the_time_is_up() {
    let mut world = World::new(with_turns(9), vec![plain()]);
    let time = u32::try_from(world.run.settings().budget.working_time().as_millis()).unwrap();
    let mut breaks = Whim { breaks_off: true, ..plain() };
    world.whims = vec![breaks.clone()];
    while world.run.asking().is_none() {
        let effect = world.run.decide(world.now);
        assert!(world.perform(effect));
    }
    let again = world.run.decide(world.now);
    assert!(matches!(again, Effect::CallModel { purpose: Purpose::Main, .. }), "{again:?}");
    breaks.pause_ms = time;
    world.whims = vec![breaks];
    assert!(world.perform(again));
    assert_eq!(world.run.decide(world.now), Effect::Exceed(Limit::Time));
    world.whims = vec![plain()];
    world.go_on();
    let outcome = world.run.outcome().unwrap();
    assert_eq!((outcome.cause, outcome.recovered), (Cause::Timeout, true));
}

/// gemini-cli 4.9: in a last turn no other tool runs.
#[test]
fn a_single_turn_is_for_the_answer() {
    let mut world = World::new(with_turns(1), vec![plain()]);
    let effect = world.run.decide(world.now);
    assert!(world.perform(effect), "the turn starts");
    let asked = world.run.decide(world.now);
    assert!(matches!(asked, Effect::CallModel { with_tools: false, .. }), "{asked:?}");
    let (world, outcome) = outcome_of(with_turns(1), vec![calling()]);
    assert_eq!((outcome.cause, world.run.tool_calls()), (Cause::MaxTurns, 0));
}

#[test]
fn who_answers_in_words_is_reminded_once_and_then_asked_to_finish() {
    let by_call = |turns| RunSettings { ending: Ending::CompleteTask, ..with_turns(turns) };
    let completes = Whim { complete: true, ..plain() };
    let (world, outcome) = outcome_of(by_call(9), vec![plain(), completes.clone()]);
    assert_eq!((outcome.cause, outcome.recovered), (Cause::Goal, false));
    let purposes = |world: &World| -> Vec<Purpose> {
        let asked = world.events.iter().filter_map(|event| match &event.body {
            EventBody::ModelRequest { purpose, .. } => Some(*purpose),
            _ => None,
        });
        asked.collect()
    };
    assert_eq!(purposes(&world), [Purpose::Main, Purpose::Main]);
    let (world, outcome) = outcome_of(by_call(9), vec![plain(), plain(), completes.clone()]);
    assert_eq!((outcome.cause, outcome.recovered), (Cause::NoCompletion, true), "once is enough");
    assert_eq!(purposes(&world), [Purpose::Main, Purpose::Main, Purpose::Grace]);
    let (world, outcome) = outcome_of(by_call(2), vec![plain(), completes]);
    assert_eq!((outcome.cause, outcome.recovered), (Cause::NoCompletion, true), "no turn is left");
    assert_eq!(purposes(&world), [Purpose::Main, Purpose::Grace]);
}

#[test]
fn the_model_is_told_of_calls_that_were_not_taken() {
    let mut world = asking_for(&[ToolCall::new("a", "look", json!({}))]);
    let mut events = std::mem::take(&mut world.events);
    if let Some(EventBody::ModelResponse { dropped_calls, .. }) =
        events.last_mut().map(|event| &mut event.body)
    {
        *dropped_calls = 72;
    }
    world.run = Run::replay(RunId::new("r"), &events);
    world.events = events;
    world.end_call(&ToolCall::new("a", "look", json!({})), Ok(json!(1)));
    world.record(None, EventBody::TurnEnded { turn: 1 });
    let told = Effect::Tell(Told::CallsWereDropped { dropped: 72 });
    assert_eq!(world.run.decide(world.now), told);
    world.go_on();
    assert_eq!(world.run.outcome().unwrap().cause, Cause::Goal, "it is told once");
}

#[test]
fn a_huge_limit_is_no_reason_to_break_down() {
    let price = Price {
        input: "0.0000000001".parse().unwrap(),
        cached_input: None,
        cache_write: None,
        output: "0.0000000000000000000001".parse().unwrap(),
    };
    let mut settings = with_turns(3);
    settings.budget.cost = Some("79228162514264337593543950335".parse().unwrap());
    settings.model.price = Some(price);
    assert_eq!(outcome_of(settings, vec![plain()]).1.cause, Cause::Goal);
}

#[test]
fn a_share_of_tokens_and_money_is_left_to_the_caller() {
    let price = Price {
        input: "1".parse().unwrap(),
        cached_input: None,
        cache_write: None,
        output: "10".parse().unwrap(),
    };
    let mut settings = with_turns(9);
    settings.model.price = Some(price);
    settings.budget.tokens = Some(2_000);
    settings.budget.cost = Some("1".parse().unwrap());
    let run = World::new(settings.clone(), vec![plain()]).run;
    let longer = run.context_tokens() + run.context_tokens() / 2;
    let left = run.left(Timestamp::from_millis(1_000));
    assert_eq!(left.tokens, Some(1_000), "half of few");
    let wanted = Usage { input_tokens: longer, output_tokens: 2_048, ..Usage::default() };
    let kept = price.of(&wanted).amount();
    assert_eq!(left.cost.unwrap().amount() + kept, rust_decimal::Decimal::ONE, "one more answer");
    settings.budget.tokens = Some(1_000_000);
    let run = World::new(settings, vec![plain()]).run;
    assert_eq!(run.kept().0, longer + 2_048);
}
