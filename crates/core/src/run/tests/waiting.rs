//! Questions to people: no time passes, and they stay open.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Whim, answered, asked, asking_for, asking_within, calling, outcome_of, plain, resumed,
    with_turns,
};
use crate::effect::Effects;
use crate::event::EventBody;
use crate::message::ToolCall;
use crate::outcome::{Cause, Status};
use crate::permission::Permission;
use crate::policy::RuleSpec;
use crate::run::{Effect, Refusal};
use crate::spec::Repeat;
use crate::time::Millis;
use crate::usage::Usage;

#[test]
fn waiting_for_a_person_takes_no_time() {
    let slow = Whim { asks: true, ..calling() };
    let (world, outcome) = outcome_of(with_turns(9), vec![slow.clone(), slow, plain()]);
    assert_eq!(outcome.cause, Cause::Goal, "hours of waiting do not count");
    assert!(world.run.elapsed(world.now) < Duration::from_secs(1));
}

#[test]
fn the_time_in_which_a_call_asks_a_person_does_not_count() {
    let mut settings = with_turns(9);
    settings.budget.time_ms = Millis::new(Duration::from_mins(5));
    let call = ToolCall::new("a", "tool2", json!({}));
    let mut world = asking_within(settings, std::slice::from_ref(&call));
    let started = EventBody::ToolCallStarted {
        tool_name: "tool2".to_owned(),
        description: String::new(),
        effects: Effects::default(),
        repeat: Repeat::Unsafe,
    };
    world.record(Some(&call.id), started);
    let asked = EventBody::InquiryAsked {
        tool_name: "tool2".to_owned(),
        who: "mcp:s".to_owned(),
        message: "Who are you?".to_owned(),
        wanted: crate::event::Wanted::Visit { url: "https://a.example".to_owned() },
        problem: None,
        reason: String::new(),
        until: None,
        fingerprint: String::new(),
    };
    world.record(Some(&call.id), asked);
    assert!(world.run.only_waits() && world.run.questions().contains_key(&call.id));
    world.wait(3_600_000);
    assert_eq!(world.run.time_left(world.now), None);
    let answered = EventBody::InquiryAnswered {
        tool_name: "tool2".to_owned(),
        who: "mcp:s".to_owned(),
        accepted: true,
        values: None,
        message: None,
        by: None,
    };
    world.record(Some(&call.id), answered);
    assert!(!world.run.only_waits() && world.run.questions().is_empty(), "the call works again");
    assert!(world.run.elapsed(world.now) < Duration::from_secs(1));
    world.end_call(&call, Ok(json!(1)));
    world.go_on();
    assert_eq!(world.run.outcome().unwrap().cause, Cause::Goal);
}

#[test]
fn a_run_with_nothing_to_do_but_to_wait_is_parked_and_goes_on_with_the_same_calls() {
    let call = |id: &str| ToolCall::new(id, "tool2", json!({}));
    let calls = [call("a"), call("b")];
    let mut world = asking_for(&calls);
    world.record(Some(&calls[0].id), asked("tool2"));
    world.record(
        Some(&calls[0].id),
        EventBody::ToolCallDeferred {
            tool_name: "tool2".to_owned(),
            reason: "nobody answered".to_owned(),
        },
    );
    let effect = world.run.decide(world.now);
    assert_eq!(effect, Effect::CallTools(vec![calls[1].clone()]), "the other one can be made");
    world.end_call(&calls[1], Ok(json!(1)));
    let effect = world.run.decide(world.now);
    let Effect::Finish { outcome, answer: None } = effect else { panic!("{effect:?}") };
    assert_eq!((outcome.status, outcome.cause), (Status::Parked, Cause::AwaitsApproval));

    let usage = Usage::default();
    world.record(None, EventBody::RunEnded { outcome, answer: None, usage });
    assert_eq!(world.run.decide(world.now), Effect::Rest);
    assert_eq!(world.run.questions().keys().collect::<Vec<_>>(), [&calls[0].id]);
    world.wait(86_400_000);
    world.record(None, resumed(usage));
    assert!(world.run.elapsed(world.now) < Duration::from_secs(1), "nobody worked on it");
    assert_eq!(world.run.decide(world.now), Effect::CallTools(vec![calls[0].clone()]));
    world.record(Some(&calls[0].id), answered("tool2"));
    assert_eq!(world.run.granted(), [RuleSpec::tool(Permission::Allow, "tool2")]);
    world.go_on();
    assert_eq!(world.run.outcome().unwrap().cause, Cause::Goal);
    assert!(world.run.questions().is_empty());
    world.check_answers();
}

/// Ctrl-C at a question answers nothing: it is asked again, unless there is something else to do.
#[test]
fn a_question_stays_open_when_a_run_is_stopped() {
    for anything_else in [false, true] {
        let call = ToolCall::new("a", "tool2", json!({}));
        let mut world = asking_for(std::slice::from_ref(&call));
        world.record(Some(&call.id), asked("tool2"));
        world.record(None, EventBody::RunCancelled { cause: Cause::Interrupted });
        let (tool_name, reason) = ("tool2".to_owned(), "it was stopped".to_owned());
        world.record(Some(&call.id), EventBody::ToolCallDeferred { tool_name, reason });
        let effect = world.run.decide(world.now);
        let Effect::Finish { outcome, answer: None } = effect else { panic!("{effect:?}") };
        assert_eq!(outcome.cause, Cause::Interrupted);
        let usage = Usage::default();
        world.record(None, EventBody::RunEnded { outcome, answer: None, usage });
        let goes_on = EventBody::RunResumed {
            model: None,
            settings: None,
            lost: usage,
            anything_else,
            redirected: false,
            again: Vec::new(),
            origin: Value::Null,
        };
        world.record(None, goes_on);
        let calls = vec![call];
        let expected = if anything_else {
            Effect::Refuse { calls, why: Refusal::GivenUp }
        } else {
            Effect::CallTools(calls)
        };
        assert_eq!(world.run.decide(world.now), expected);
        world.go_on();
        assert_eq!(world.run.outcome().unwrap().cause, Cause::Goal);
        world.check_answers();
    }
}
