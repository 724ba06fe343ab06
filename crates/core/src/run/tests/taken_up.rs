//! Runs that ended, or were lost, and are taken up.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Whim, World, answer_of, asking_for, calling, outcome_of, plain, repeat_of, request, resumed,
    with_turns,
};
use crate::effect::Effects;
use crate::error::ToolError;
use crate::event::EventBody;
use crate::id::RunId;
use crate::message::{Message, Part, Role, StopReason, ToolCall};
use crate::outcome::{Cause, Outcome};
use crate::run::{Effect, Purpose, Refusal};
use crate::time::Millis;
use crate::usage::Usage;

#[test]
fn a_run_that_ended_goes_on_with_a_new_message_and_new_turns() {
    let (mut world, outcome) = outcome_of(with_turns(2), vec![calling(), plain()]);
    assert_eq!(outcome.cause, Cause::MaxTurns);
    world.record(None, EventBody::UserMessage { message: Message::text(Role::User, "unheard") });
    assert_eq!(world.run.decide(world.now), Effect::Rest, "it has ended");

    world.wait(86_400_000);
    world.record(None, resumed(Usage::default()));
    world.record(None, EventBody::UserMessage { message: Message::text(Role::User, "and now?") });
    assert!(world.run.elapsed(world.now).is_zero(), "its time begins anew");
    world.whims = vec![plain()];
    world.go_on();
    assert_eq!(world.run.outcome().unwrap().cause, Cause::Goal);
    assert_eq!(world.run.turns(), 3, "they are numbered on");
    let said: Vec<String> = world.run.messages().iter().map(Message::words).collect();
    assert_eq!(said.last().unwrap(), "words 0");
    assert!(said.contains(&"and now?".to_owned()));
}

#[test]
fn the_time_while_nobody_works_on_a_run_does_not_count() {
    let mut world = World::new(with_turns(9), vec![plain()]);
    let asked = EventBody::TurnStarted { turn: 1 };
    world.wait(700);
    world.record(None, asked);
    world.wait(86_400_000);
    world.record(None, resumed(Usage::default()));
    assert_eq!(world.run.elapsed(world.now), Duration::from_millis(700));
}

#[test]
fn an_answer_that_was_lost_is_asked_for_again_and_paid_for() {
    let mut world = World::new(with_turns(9), vec![plain()]);
    world.record(None, EventBody::TurnStarted { turn: 1 });
    let (model, purpose) = ("m".to_owned(), Purpose::Main);
    world.record(None, request(model, purpose, None, 50));
    world.record(None, resumed(Usage { input_tokens: 50, ..Usage::default() }));
    assert_eq!(world.run.spent().input_tokens, 50);
    let effect = world.run.decide(world.now);
    assert!(matches!(effect, Effect::CallModel { purpose: Purpose::Main, .. }), "{effect:?}");
}

#[test]
fn a_call_that_may_do_harm_is_not_made_again() {
    let call = |id: &str, tool: &str| ToolCall::new(id, tool, json!({}));
    let calls = [call("a", "tool0"), call("b", "tool1"), call("c", "tool2"), call("d", "tool3")];
    let mut world = asking_for(&calls);
    for call in &calls[..3] {
        let started = EventBody::ToolCallStarted {
            tool_name: call.name.clone(),
            description: String::new(),
            effects: Effects::default(),
            repeat: repeat_of(&call.name),
        };
        world.record(Some(&call.id), started);
    }
    world.record(None, resumed(Usage::default()));
    let refused = vec![calls[2].clone()];
    let effect = world.run.decide(world.now);
    assert_eq!(effect, Effect::Refuse { calls: refused, why: Refusal::Interrupted });
    world.perform(effect);
    let again = vec![calls[0].clone(), calls[1].clone(), calls[3].clone()];
    assert_eq!(world.run.decide(world.now), Effect::CallTools(again));
    assert_eq!(world.run.tool_calls(), 3);
}

/// The original goes on with a call: nobody can say of it that its process was lost.
#[test]
fn a_fork_that_begins_in_the_middle_of_a_call_leaves_it_to_the_original() {
    let call = ToolCall::new("a", "tool2", json!({}));
    let mut world = asking_for(std::slice::from_ref(&call));
    let started = EventBody::ToolCallStarted {
        tool_name: call.name.clone(),
        description: String::new(),
        effects: Effects::default(),
        repeat: repeat_of(&call.name),
    };
    world.record(Some(&call.id), started);
    world.record(None, EventBody::RunForked { from: RunId::new("other"), at: 4 });
    world.record(None, resumed(Usage::default()));
    let effect = world.run.decide(world.now);
    assert_eq!(effect, Effect::Refuse { calls: vec![call], why: Refusal::Elsewhere });
}

#[test]
fn a_look_back_that_was_answered_is_not_asked_for_again() {
    let mut settings = with_turns(9);
    settings.strategy = crate::Strategy::Planned;
    let mut world = World::new(settings, vec![plain()]);
    let message = Message::text(Role::Assistant, "1. look");
    let (purpose, usage, stop) = (Purpose::Plan, Usage::default(), StopReason::Done);
    let model = "m".to_owned();
    world.record(None, request(model, purpose, None, 1));
    world.record(None, answer_of(purpose, message, usage, stop));
    world.record(None, resumed(Usage::default()));
    assert_eq!(world.run.decide(world.now), Effect::Plan("1. look".to_owned()));
}

#[test]
fn new_limits_count_for_a_run_that_was_lost_at_the_old_ones() {
    let mut world = World::new(with_turns(2), vec![calling()]);
    while !matches!(world.run.decide(world.now), Effect::CallModel { purpose: Purpose::Grace, .. })
    {
        let effect = world.run.decide(world.now);
        assert!(world.perform(effect));
    }
    let (model, purpose) = ("m".to_owned(), Purpose::Grace);
    let notice = Some("finish".to_owned());
    world.record(None, request(model, purpose, notice, 1));
    let settings = Some(with_turns(9));
    let lost = Usage { input_tokens: 1, ..Usage::default() };
    let resumed = EventBody::RunResumed {
        model: None,
        settings,
        lost,
        anything_else: false,
        redirected: false,
        again: Vec::new(),
        origin: Value::Null,
    };
    world.record(None, resumed);
    let effect = world.run.decide(world.now);
    assert!(matches!(effect, Effect::CallModel { purpose: Purpose::Main, .. }), "{effect:?}");
    assert!(!world.run.owes_an_answer(), "it was paid for once");
}

#[test]
fn a_model_that_failed_is_asked_again_when_the_run_is_taken_up() {
    let broken = Whim { fails: true, ..plain() };
    let mut world = World::new(with_turns(9), vec![broken]);
    for _ in 0..2 {
        let effect = world.run.decide(world.now);
        assert!(world.perform(effect));
    }
    world.record(None, resumed(Usage::default()));
    world.whims = vec![plain()];
    world.go_on();
    assert_eq!(world.run.outcome().unwrap().cause, Cause::Goal);
}

/// An outage takes a whole tree: that an agent found no model is nothing that a model has to hear which was away, too.
#[test]
fn an_agent_that_found_no_model_goes_on_with_a_run_that_found_none() {
    let calls = [ToolCall::new("a", "ask", json!({})), ToolCall::new("b", "look", json!({}))];
    let mut world = asking_for(&calls);
    let child = RunId::new("r-a");
    let ended = |cause: Cause| ended(&child, cause, None);
    world.record(Some(&calls[0].id), spawned(&child, false));
    world.record(Some(&calls[0].id), ended(Cause::ModelUnavailable));
    world.end_call(&calls[0], Err("no model"));
    world.end_call(&calls[1], Ok(json!(1)));
    assert_eq!(world.run.without_model().count(), 0, "the run itself goes on");
    let heard = world.run.messages().len();
    world.whims = vec![Whim { fails: true, ..plain() }];
    world.go_on();
    assert_eq!(world.run.outcome().unwrap().cause, Cause::ModelUnavailable);
    let again: Vec<RunId> = world.run.without_model().map(|(id, _)| id.clone()).collect();
    assert_eq!(again, std::slice::from_ref(&child));
    world.record(None, resumed_with(again));
    assert_eq!(world.run.messages().len(), heard - 1, "the answers are taken back");
    assert_eq!(world.run.children()[&child].outcome, None);
    assert_eq!(world.run.decide(world.now), Effect::CallTools(vec![calls[0].clone()]));
    world.record(Some(&calls[0].id), ended(Cause::Goal));
    world.end_call(&calls[0], Ok(json!("done")));
    world.whims = vec![plain()];
    world.go_on();
    assert_eq!(world.run.outcome().unwrap().cause, Cause::Goal);
    world.check_answers();
}

fn spawned(child: &RunId, background: bool) -> EventBody {
    let (name, inputs) = ("worker".to_owned(), serde_json::Map::new());
    EventBody::AgentSpawned { child: child.clone(), name, inputs, background, continued: false }
}

/// An agent ends, and its caller is told so, or is not.
fn ended(child: &RunId, cause: Cause, told: Option<&str>) -> EventBody {
    let (outcome, message) = (cause.into(), told.map(str::to_owned));
    EventBody::AgentEnded { child: child.clone(), outcome, usage: Usage::default(), message }
}

/// The run is taken up as it was, and these agents of it go on.
fn resumed_with(again: Vec<RunId>) -> EventBody {
    EventBody::RunResumed {
        model: None,
        settings: None,
        lost: Usage::default(),
        anything_else: false,
        redirected: false,
        again,
        origin: Value::Null,
    }
}

/// Bug: what was refused beside an agent that found no model was forgotten when that agent went on.
#[test]
fn what_was_refused_beside_an_agent_that_goes_on_is_remembered() {
    let (push, ask) = (ToolCall::new("a", "push", json!({})), ToolCall::new("b", "ask", json!({})));
    let mut world = asking_for(&[push.clone(), ask.clone()]);
    let child = RunId::new("r-b");
    let ended = |cause: Cause| ended(&child, cause, None);
    let denied = EventBody::ToolCallDenied {
        tool_name: push.name.clone(),
        error: ToolError::permission("no"),
        content: vec![Part::text("no")],
        duration_ms: Millis::default(),
    };
    world.record(Some(&push.id), denied);
    world.record(Some(&ask.id), spawned(&child, false));
    world.record(Some(&ask.id), ended(Cause::ModelUnavailable));
    world.end_call(&ask, Err("no model"));
    world.whims = vec![Whim { fails: true, ..plain() }];
    world.go_on();
    let again: Vec<RunId> = world.run.without_model().map(|(id, _)| id.clone()).collect();
    assert_eq!(again, std::slice::from_ref(&child));
    world.record(None, resumed_with(again));
    world.record(Some(&ask.id), ended(Cause::Error));
    world.end_call(&ask, Err("it failed"));
    world.whims = vec![plain()];
    world.go_on();
    assert_eq!(world.run.outcome().unwrap().cause, Cause::Denied);
}

/// Starts a run that left these agents working beside it, each by a call, and has nothing but them to wait for.
fn leaving_at_work(children: &[RunId]) -> World {
    let call = |child: &RunId| ToolCall::new(child.as_str(), "ask", json!({}));
    let calls: Vec<ToolCall> = children.iter().map(call).collect();
    let mut world = asking_for(&calls);
    for (child, call) in children.iter().zip(&calls) {
        world.record(Some(&call.id), spawned(child, true));
        world.end_call(call, Ok(json!("it works")));
    }
    for _ in 0..20 {
        let effect = world.run.decide(world.now);
        if effect == Effect::AwaitAgents {
            return world;
        }
        world.perform(effect);
    }
    panic!("it does not wait: {:#?}", world.run);
}

fn found_no_model(child: &RunId) -> EventBody {
    ended(child, Cause::ModelUnavailable, Some("it found no model"))
}

/// Neither is it that one in the background found none, or was stopped since the run did not.
#[test]
fn agents_in_the_background_go_on_with_a_run_that_found_no_model() {
    let children = [RunId::new("r-a"), RunId::new("r-b")];
    let mut world = leaving_at_work(&children);
    let heard = world.run.messages().to_vec();
    world.record(None, found_no_model(&children[0]));
    world.whims = vec![Whim { fails: true, ..plain() }];
    world.go_on();
    assert_eq!(world.run.outcome().unwrap().cause, Cause::ModelUnavailable);
    assert_eq!(world.run.children()[&children[1]].outcome, Some(Outcome::from(Cause::Interrupted)));
    let again: Vec<RunId> = world.run.without_model().map(|(id, _)| id.clone()).collect();
    assert_eq!(again, children);
    assert!(world.run.waits_for_a_word(&again), "all that was said since is taken back");
    assert!(!world.run.waits_for_a_word(&[]));
    world.record(None, resumed_with(again));
    assert_eq!(world.run.messages(), heard);
    assert!(world.run.waits_for_a_word(&[]));
    assert!(world.run.children().values().all(|child| child.outcome.is_none()));
    world.record(None, EventBody::UserMessage { message: Message::text(Role::User, "go on") });
    world.whims = vec![plain()];
    world.go_on();
    assert_eq!(world.run.outcome().unwrap().cause, Cause::Goal);
    assert!(
        world
            .run
            .children()
            .values()
            .all(|child| child.outcome == Some(Outcome::from(Cause::Goal)))
    );
    world.check_answers();
}

#[test]
fn what_the_model_heard_of_an_agent_in_the_background_is_not_taken_back() {
    let child = RunId::new("r-a");
    let mut world = leaving_at_work(std::slice::from_ref(&child));
    world.record(None, found_no_model(&child));
    world.whims = vec![calling()];
    while !matches!(world.run.decide(world.now), Effect::CallTools(_)) {
        let effect = world.run.decide(world.now);
        assert!(world.perform(effect));
    }
    world.whims = vec![Whim { fails: true, ..plain() }];
    world.go_on();
    assert_eq!(world.run.outcome().unwrap().cause, Cause::ModelUnavailable);
    assert_eq!(world.run.without_model().count(), 0);
}
