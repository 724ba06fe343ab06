//! Runs that a signal stops politely: they are resumed like runs whose process was killed.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::any::{settings, whim};
use super::{
    World, answer_of, asked, asking_for, asking_within, plain, repeat_of, request, resumed,
    with_turns,
};
use crate::effect::Effects;
use crate::event::EventBody;
use crate::id::{CallId, RunId};
use crate::message::{Message, Part, Role, StopReason, ToolCall};
use crate::outcome::{Cause, Outcome, Status};
use crate::run::{Effect, Purpose, Refusal, Run};
use crate::time::Millis;
use crate::usage::{ModelFacts, Price, Usage};

fn started(call: &ToolCall) -> EventBody {
    EventBody::ToolCallStarted {
        tool_name: call.name.clone(),
        description: String::new(),
        effects: Effects::default(),
        repeat: repeat_of(&call.name),
    }
}

fn deferred(call: &ToolCall) -> EventBody {
    let (tool_name, reason) = (call.name.clone(), "the run was stopped".to_owned());
    EventBody::ToolCallDeferred { tool_name, reason }
}

fn something_else() -> EventBody {
    match resumed(Usage::default()) {
        EventBody::RunResumed { model, settings, lost, again, origin, .. } => {
            EventBody::RunResumed {
                model,
                settings,
                lost,
                anything_else: true,
                redirected: false,
                again,
                origin,
            }
        }
        other => other,
    }
}

impl World {
    /// A signal stops the run. What works beside it is stopped with it.
    fn stop(&mut self) {
        self.record(None, EventBody::RunCancelled { cause: Cause::Terminated });
        for _ in 0..10 {
            match self.run.decide(self.now) {
                Effect::StopAgents => {
                    let works = |child: &&RunId| self.run.children()[*child].outcome.is_none();
                    let child = self.run.children().keys().find(works).unwrap().clone();
                    let (outcome, usage) = (Outcome::from(Cause::Terminated), Usage::default());
                    let message = None;
                    self.record(None, EventBody::AgentEnded { child, outcome, usage, message });
                }
                Effect::Finish { outcome, answer } => {
                    let usage = *self.run.spent();
                    assert_eq!(outcome.status, Status::Cancelled);
                    return self.record(None, EventBody::RunEnded { outcome, answer, usage });
                }
                other => panic!("a run that is stopped does something first: {other:?}"),
            }
        }
        panic!("it does not end: {:#?}", self.run);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn run_stopped_anywhere_goes_on_like_one_that_was_killed_there(
        settings in settings(),
        whims in prop::collection::vec(whim(), 1..20),
        at in any::<prop::sample::Index>(),
    ) {
        let mut world = World::new(settings, whims);
        world.go_on();
        let kept = 1 + at.index(world.events.len());
        world.events.truncate(kept);
        world.run = Run::replay(RunId::new("r"), &world.events);
        world.now = world.events.last().unwrap().ts;
        let over = world.run.outcome().is_some() || world.run.is_cancelled();
        prop_assume!(!over);
        let killed_events = world.events.clone();
        world.stop();
        world.wait(86_400_000);
        // What was lost is charged in both.
        world.record(None, resumed(Usage::default()));
        let mut killed = Run::replay(RunId::new("r"), &killed_events);
        killed.apply(world.events.last().unwrap());
        prop_assert_eq!(world.run.decide(world.now), killed.decide(world.now));
        prop_assert_eq!(world.run.elapsed(world.now), killed.elapsed(world.now));
        prop_assert_eq!(world.run.turns_used(), killed.turns_used());
        prop_assert_eq!(world.run.tool_calls_used(), killed.tool_calls_used());
        prop_assert_eq!(world.run.messages(), killed.messages());
    }
}

#[test]
fn calls_of_a_stopped_run_are_made_again_or_told_as_interrupted() {
    let call = |id: &str, tool: &str| ToolCall::new(id, tool, json!({}));
    let calls = [call("a", "tool0"), call("b", "tool1"), call("c", "tool2"), call("d", "tool3")];
    for answered_at_once in [false, true] {
        let mut world = asking_for(&calls);
        for call in &calls[..3] {
            world.record(Some(&call.id), started(call));
        }
        world.record(None, EventBody::RunCancelled { cause: Cause::Terminated });
        for call in [&calls[0], &calls[1], &calls[3]] {
            world.record(Some(&call.id), deferred(call));
        }
        if answered_at_once {
            world.end_call(&calls[2], Err("interrupted"));
        }
        world.stop();
        world.record(None, resumed(Usage::default()));
        let effect = world.run.decide(world.now);
        if !answered_at_once {
            let calls = vec![calls[2].clone()];
            assert_eq!(effect, Effect::Refuse { calls, why: Refusal::Interrupted });
            world.perform(effect);
        }
        let again = vec![calls[0].clone(), calls[1].clone(), calls[3].clone()];
        assert_eq!(world.run.decide(world.now), Effect::CallTools(again));
        world.go_on();
        assert_eq!(world.run.tool_calls(), 4, "a call that is made again counts once");
        world.check_answers();
    }
}

#[test]
fn calls_of_a_stopped_run_are_given_up_for_a_new_message() {
    let call = |id: &str, tool: &str| ToolCall::new(id, tool, json!({}));
    let calls = [call("a", "tool0"), call("b", "tool2"), call("c", "tool3")];
    let mut world = asking_for(&calls);
    world.record(Some(&calls[0].id), started(&calls[0]));
    world.record(Some(&calls[1].id), started(&calls[1]));
    world.record(None, EventBody::RunCancelled { cause: Cause::Interrupted });
    world.record(Some(&calls[0].id), deferred(&calls[0]));
    world.stop();
    world.record(None, something_else());
    let lost = Effect::Refuse { calls: vec![calls[1].clone()], why: Refusal::Interrupted };
    assert_eq!(world.run.decide(world.now), lost);
    world.perform(lost);
    let given_up = vec![calls[0].clone(), calls[2].clone()];
    let given_up = Effect::Refuse { calls: given_up, why: Refusal::GivenUp };
    assert_eq!(world.run.decide(world.now), given_up);
    world.go_on();
    world.check_answers();
}

#[test]
fn request_of_a_stopped_run_is_asked_again_in_the_same_turn() {
    for anything_else in [false, true] {
        let mut world = World::new(with_turns(2), vec![plain()]);
        world.record(None, EventBody::TurnStarted { turn: 1 });
        world.record(None, request("m".to_owned(), Purpose::Main, None, 50));
        world.record(None, EventBody::RunCancelled { cause: Cause::Interrupted });
        let failed = EventBody::ModelFailed {
            purpose: Purpose::Main,
            cause: Cause::Interrupted,
            error: "cancelled".into(),
            message: "the run was stopped".into(),
            status: None,
            hint: None,
            partial: Some("half a".into()),
            usage: Usage { input_tokens: 50, ..Usage::default() },
        };
        world.record(None, failed);
        world.stop();
        assert_eq!(world.run.lost_answer(), Usage::default(), "it is paid for");
        world
            .record(None, if anything_else { something_else() } else { resumed(Usage::default()) });
        let effect = world.run.decide(world.now);
        if anything_else {
            assert_eq!(effect, Effect::StartTurn(2));
        } else {
            assert!(
                matches!(effect, Effect::CallModel { purpose: Purpose::Main, .. }),
                "{effect:?}"
            );
            world.go_on();
            assert_eq!((world.run.turns(), world.run.outcome().unwrap().cause), (1, Cause::Goal));
        }
    }
}

#[test]
fn approval_survives_until_the_call_has_an_answer() {
    let changed = Arc::new(json!({ "command": "make check" }));
    for fork in [false, true] {
        let call = ToolCall::new("a", "tool2", json!({}));
        let mut world = asking_for(std::slice::from_ref(&call));
        let EventBody::ApprovalAsked { tool_name, kind, description, arguments, .. } =
            asked("tool2")
        else {
            unreachable!()
        };
        let shown = EventBody::ApprovalAsked {
            tool_name: tool_name.clone(),
            kind,
            description,
            arguments,
            preview: None,
            reason: String::new(),
            rules: Vec::new(),
            until: None,
            fingerprint: "shown".to_owned(),
        };
        world.record(Some(&call.id), shown);
        assert_eq!(world.run.approval(&call.id, "shown"), None, "not yet");
        let yes = EventBody::ApprovalAnswered {
            tool_name,
            approved: true,
            message: None,
            by: Some("a user".to_owned()),
            arguments: Some(Arc::clone(&changed)),
            rules: Vec::new(),
        };
        world.record(Some(&call.id), yes);
        world.record(Some(&call.id), deferred(&call));
        world.stop();
        if fork {
            world.record(None, EventBody::RunForked { from: RunId::new("other"), at: 9 });
        }
        world.record(None, resumed(Usage::default()));
        let approval = world.run.approval(&call.id, "shown").cloned();
        if fork {
            assert_eq!(approval, None, "it was for the other run");
            continue;
        }
        let approval = approval.unwrap();
        assert_eq!(
            (approval.arguments.as_ref(), approval.by.as_deref()),
            (Some(&changed), Some("a user"))
        );
        assert_eq!(world.run.approval(&call.id, "something else"), None);
        assert_eq!(world.run.approval(&CallId::new("b"), "shown"), None);
        world.end_call(&call, Ok(json!(1)));
        assert_eq!(world.run.approval(&call.id, "shown"), None, "it was used");
    }
}

#[test]
fn lost_request_is_charged_what_was_set_aside() {
    let price = Price {
        input: "3".parse().unwrap(),
        cached_input: None,
        cache_write: Some("4".parse().unwrap()),
        output: "15".parse().unwrap(),
    };
    let mut limited = with_turns(9);
    limited.model = ModelFacts { price: Some(price), ..ModelFacts::default() };
    let mut unlimited = limited.clone();
    limited.budget.tokens = Some(100_000);
    unlimited.budget.tokens = None;
    // Settings, what was recorded as set aside, and the output that is charged.
    for (settings, reserved, output) in
        [(limited.clone(), Some(9_000), 8_000), (limited, None, 8_192), (unlimited, None, 0)]
    {
        let mut world = World::new(settings, vec![plain()]);
        world.record(None, EventBody::TurnStarted { turn: 1 });
        let (model, purpose, notice) = ("m".to_owned(), Purpose::Main, None);
        let asked = EventBody::ModelRequest { model, purpose, notice, estimate: 1_000, reserved };
        world.record(None, asked.clone());
        let lost = world.run.lost_answer();
        assert_eq!((lost.input_tokens, lost.output_tokens), (1_000, output), "{reserved:?}");
        let dollars = rust_decimal::Decimal::from(1_000 * 4 + output * 15);
        let cost = dollars / rust_decimal::Decimal::from(1_000_000);
        assert_eq!(lost.cost.unwrap().amount(), cost);
        world.record(None, resumed(lost));
        assert_eq!(world.run.lost_answer(), Usage::default(), "once");
        assert_eq!(*world.run.spent(), lost);
    }
}

/// Every agent has another id, which its caller is told.
#[test]
fn same_delegation_again_and_again_is_a_loop() {
    let mut world = World::new(with_turns(50), vec![plain()]);
    let mut delegations = 0;
    for turn in 1..40_u32 {
        world.record(None, EventBody::TurnStarted { turn });
        let id = format!("call_{turn}");
        let call = ToolCall::new(id.as_str(), "delegate_to_agent", json!({ "agent_name": "a" }));
        let parts = vec![Part::ToolCall(call.clone())];
        let message = Message { role: Role::Assistant, parts };
        world.record(None, answer_of(Purpose::Main, message, Usage::default(), StopReason::Done));
        let child = RunId::new(format!("r-{id}"));
        let spawned = EventBody::AgentSpawned {
            child: child.clone(),
            name: "a".to_owned(),
            inputs: serde_json::Map::new(),
            background: false,
            continued: false,
        };
        world.record(Some(&call.id), spawned);
        let (outcome, usage) = (Outcome::from(Cause::Goal), Usage::default());
        let message = None;
        world.record(Some(&call.id), EventBody::AgentEnded { child, outcome, usage, message });
        let ended = EventBody::ToolCallCompleted {
            files: Vec::new(),
            tool_name: call.name.clone(),
            result: Arc::new(Value::Null),
            content: vec![Part::text(format!("the same\n\n(agent_id: {id})"))],
            display: None,
            duration_ms: Millis::default(),
        };
        world.record(Some(&call.id), ended);
        world.record(None, EventBody::TurnEnded { turn });
        delegations += 1;
        match world.run.decide(world.now) {
            Effect::StartTurn(_) => {}
            Effect::Tell(told) => {
                world.perform(Effect::Tell(told));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(delegations, 3, "the model is told after the third");
}

#[test]
fn what_does_not_fit_the_window_is_dropped_without_asking_for_a_summary() {
    let mut settings = with_turns(9);
    settings.model = ModelFacts { window: Some(4_000), ..ModelFacts::default() };
    let call = |id: &str| ToolCall::new(id, "tool0", json!({}));
    let calls: Vec<ToolCall> = (0..3).map(|index| call(&format!("c{index}"))).collect();
    let mut world = asking_within(settings, &calls);
    for call in &calls {
        let ended = EventBody::ToolCallCompleted {
            files: Vec::new(),
            tool_name: call.name.clone(),
            result: Arc::new(Value::Null),
            content: vec![Part::text("x".repeat(8_000))],
            display: None,
            duration_ms: Millis::default(),
        };
        world.record(Some(&call.id), ended);
    }
    world.record(None, EventBody::TurnEnded { turn: 1 });
    let later = Message::text(Role::User, "and this");
    world.record(None, EventBody::UserMessage { message: later });
    world.record(None, EventBody::TurnStarted { turn: 2 });
    let effect = world.run.decide(world.now);
    let Effect::Shorten { kept_from, summary } = effect else { panic!("{effect:?}") };
    assert_eq!(summary, "");
    assert!(world.run.is_short_enough(world.run.after_compaction(kept_from, "dropped")));
}
