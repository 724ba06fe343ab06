//! Whatever the world does, and wherever the run is lost: the promises hold.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::any::{settings, whim};
use super::{Whim, World, resumed};
use crate::event::{Event, EventBody};
use crate::id::{CallId, RunId};
use crate::message::{Message, Part};
use crate::outcome::{Cause, Status};
use crate::run::{Effect, Purpose, Run, RunSettings};
use crate::spec::Repeat;
use crate::usage::Usage;

proptest! {
    #![proptest_config(ProptestConfig { cases: 12_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// gemini-cli 4.4 (#14088), 4.9: whatever happens, each call has one answer before anything else is said.
    #[test]
    fn whatever_happens_the_promises_hold(
        settings in settings(),
        whims in prop::collection::vec(whim(), 1..30),
    ) {
        let world = run_to_end(settings, whims);
        world.check_answers();
        world.check_limits();
        let outcome = world.run.outcome().unwrap();
        prop_assert_eq!(outcome.status, outcome.cause.status());
        prop_assert_eq!(outcome.recovered, outcome.cause != Cause::Goal && world.ended_with_answer());
        prop_assert_eq!(outcome.status == Status::Completed, outcome.cause == Cause::Goal);
        prop_assert_eq!(world.run.decide(world.now), Effect::Rest);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn folding_the_events_gives_the_same_run_and_the_same_next_step(
        settings in settings(),
        whims in prop::collection::vec(whim(), 1..20),
    ) {
        let mut world = World::new(settings, whims);
        for _ in 0..2_000 {
            let again = Run::replay(RunId::new("r"), &world.events);
            prop_assert_eq!(&again, &world.run);
            prop_assert_eq!(again.decide(world.now), world.run.decide(world.now));
            let effect = world.run.decide(world.now);
            if !world.perform(effect) {
                break;
            }
        }
        let json = serde_json::to_string(&world.run).unwrap();
        prop_assert_eq!(serde_json::from_str::<Run>(&json).unwrap(), world.run);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_that_is_lost_anywhere_goes_on_and_does_nothing_twice(
        settings in settings(),
        whims in prop::collection::vec(whim(), 1..20),
        crashes in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let mut world = run_to_end(settings, whims);
        for crash in crashes {
            let kept = 1 + crash.index(world.events.len());
            world.crash_after(kept);
            world.go_on();
            world.check_answers();
            world.check_limits();
            world.check_nothing_is_done_twice();
        }
    }
}

fn run_to_end(settings: RunSettings, whims: Vec<Whim>) -> World {
    let mut world = World::new(settings, whims);
    world.go_on();
    world
}

impl World {
    /// Only the first events are left, and somebody takes the run up again a day later.
    fn crash_after(&mut self, events: usize) {
        self.events.truncate(events);
        self.run = Run::replay(RunId::new("r"), &self.events);
        self.wait(86_400_000);
        if self.run.outcome().is_none_or(|outcome| outcome.status == Status::Parked) {
            let lost = Usage::default();
            self.record(None, resumed(lost));
        }
    }

    fn spent_before_the_last_call(&self) -> Usage {
        let mut used: Vec<Usage> = self
            .events
            .iter()
            .filter_map(|event| match &event.body {
                EventBody::ModelResponse { usage, .. } => Some(*usage),
                _ => None,
            })
            .collect();
        used.pop();
        used.into_iter().sum()
    }

    /// Every call has one answer; they follow the calls, in their order, before anything else. What waits when a
    /// run is stopped is answered when it is taken up.
    pub(super) fn check_answers(&self) {
        let messages = self.run.messages();
        let stopped = self.run.outcome().is_some_and(|outcome| outcome.status == Status::Cancelled);
        for (index, message) in messages.iter().enumerate() {
            let asked: Vec<&CallId> = message.calls().map(|call| &call.id).collect();
            if asked.is_empty() {
                continue;
            }
            let after = messages.get(index + 1);
            if stopped && after.is_none() {
                continue;
            }
            let answered: Vec<&CallId> = after.map(answers).unwrap_or_default();
            assert_eq!(asked, answered, "in {messages:#?}");
        }
        let text = format!("{messages:?}");
        assert!(!text.contains("\"again\""), "a second answer counted: {text}");
        let all: Vec<&CallId> = messages.iter().flat_map(answers).collect();
        let unique: BTreeSet<_> = all.iter().collect();
        assert_eq!(all.len(), unique.len(), "a call was answered twice");
    }

    /// No limit is passed by more than the call in flight.
    fn check_limits(&self) {
        let budget = &self.run.settings().budget;
        assert!(self.run.turns() <= budget.turns, "{} turns", self.run.turns());
        if let Some(limit) = budget.tool_calls {
            assert!(self.run.tool_calls() <= limit, "{} calls", self.run.tool_calls());
        }
        let spent = self.spent_before_the_last_call();
        if let Some(limit) = budget.tokens {
            let used = spent.input_tokens + spent.output_tokens;
            assert!(used <= limit, "{used} tokens of {limit}");
        }
        if let Some(limit) = budget.cost {
            assert!(spent.cost.unwrap_or_default() <= limit, "{:?} of {limit}", spent.cost);
        }
        // A last answer that broke off is asked for again.
        let (mut late, mut again, mut asked) = (0, 0, None);
        for event in &self.events {
            match &event.body {
                EventBody::ModelRequest { purpose, .. } => asked = Some(*purpose),
                EventBody::ModelRetry { .. } => again += usize::from(asked == Some(Purpose::Grace)),
                _ => {}
            }
            let main =
                matches!(&event.body, EventBody::ModelRequest { purpose, .. } if purpose.is_turn());
            let before = Run::replay(
                RunId::new("r"),
                self.events.iter().take_while(|earlier| earlier.position != event.position),
            );
            if main && before.elapsed(event.ts) >= budget.working_time() {
                late += 1;
            }
        }
        let resumed = |event: &&Event| matches!(event.body, EventBody::RunResumed { .. });
        let allowed = 1 + again + self.events.iter().filter(resumed).count();
        assert!(
            late <= allowed,
            "{late} requests after the time was up; only a last answer, or one that was lost, may be one"
        );
    }

    /// What has ended never begins again, and what may do harm never begins twice.
    fn check_nothing_is_done_twice(&self) {
        let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
        for event in &self.events {
            let Some(call) = &event.call else { continue };
            match &event.body {
                EventBody::ToolCallStarted { repeat, .. } => {
                    assert!(!ended.contains(call), "{call} had ended");
                    let again = !begun.insert(call);
                    assert!(!again || *repeat != Repeat::Unsafe, "{call} began twice");
                }
                body if body.ends_call() => {
                    ended.insert(call);
                }
                _ => {}
            }
        }
    }

    pub(super) fn ended_with_answer(&self) -> bool {
        let ended = self.events.iter().rev().find_map(|event| match &event.body {
            EventBody::RunEnded { answer, .. } => Some(answer.is_some()),
            _ => None,
        });
        ended.unwrap_or_default()
    }
}

fn answers(message: &Message) -> Vec<&CallId> {
    let parts = message.parts.iter();
    parts
        .filter_map(|part| match part {
            Part::ToolResult { call, .. } => Some(call),
            _ => None,
        })
        .collect()
}
