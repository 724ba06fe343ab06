//! A simulated world drives the machine: a model, tools, people and a clock that do anything they like,
//! in any order. Whatever they do, the promises hold.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Budget, COMPLETE_TASK, Child, Effect, Ending, Purpose, ReflectionMode, Refusal, Run,
    RunSettings, Told,
};
use crate::effect::Effects;
use crate::error::ToolError;
use crate::event::{Event, EventBody, Position, Reflection, Rescue, VERSION, Verdict};
use crate::id::{AgentPath, CallId, RunId, TaskId};
use crate::message::{Message, Part, Role, StopReason, ToolCall};
use crate::outcome::{Cause, Outcome, Status};
use crate::permission::Permission;
use crate::policy::RuleSpec;
use crate::spec::Repeat;
use crate::time::{Millis, Timestamp};
use crate::usage::{ModelFacts, Money, Price, Usage};

/// What the world does at one step. Which of it matters depends on what the machine asks for.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a whim of its own")]
struct Whim {
    calls: Vec<(u8, bool)>,
    words: bool,
    complete: bool,
    stop: u8,
    fails: bool,
    too_long: bool,
    tokens: (u16, u16),
    order: u64,
    asks: bool,
    pause_ms: u32,
    cancel: bool,
    user: bool,
    verdict: u8,
    summary_bytes: u16,
}

fn whim() -> impl Strategy<Value = Whim> {
    let calls = prop::collection::vec((0u8..4, any::<bool>()), 0..4);
    let rare = || prop::bool::weighted(0.03);
    (
        (calls, any::<bool>(), prop::bool::weighted(0.2), 0u8..8, rare(), rare()),
        ((0u16..4_000, 0u16..2_000), any::<u64>(), any::<bool>(), 0u32..30_000),
        (rare(), rare(), 0u8..3, 0u16..4_000),
    )
        .prop_map(|(model, tools, rest)| {
            let (calls, words, complete, stop, fails, too_long) = model;
            let (tokens, order, asks, pause_ms) = tools;
            let (cancel, user, verdict, summary_bytes) = rest;
            Whim {
                calls,
                words,
                complete,
                stop,
                fails,
                too_long,
                tokens,
                order,
                asks,
                pause_ms,
                cancel,
                user,
                verdict,
                summary_bytes,
            }
        })
}

fn settings() -> impl Strategy<Value = RunSettings> {
    let budget = (
        1u32..8,
        1_000u64..400_000,
        prop::option::of(500u64..60_000),
        prop::option::of(1u32..400),
        prop::option::of(1u32..6),
    )
        .prop_map(|(turns, time, tokens, cents, tool_calls)| Budget {
            turns,
            time_ms: Millis::new(Duration::from_millis(time)),
            tokens,
            cost: cents.map(|cents| format!("0.{cents:03}").parse().unwrap()),
            tool_calls,
            ..Budget::default()
        });
    let ending = prop::sample::select(Ending::ALL);
    let strategy = prop::sample::select(crate::Strategy::ALL);
    let reflection = prop::sample::select(ReflectionMode::ALL);
    let priced = prop::bool::weighted(0.8);
    let window = prop::option::of(2_000u64..50_000);
    (budget, ending, strategy, reflection, priced, window).prop_map(
        |(budget, ending, strategy, reflection, priced, window)| RunSettings {
            budget,
            ending,
            strategy,
            reflection,
            model: ModelFacts {
                window,
                max_output: Some(4_000),
                max_calls: None,
                price: priced.then(|| Price {
                    input: "3".parse().unwrap(),
                    cached_input: None,
                    cache_write: None,
                    output: "15".parse().unwrap(),
                }),
            },
            ..RunSettings::default()
        },
    )
}

/// Drives a machine the way a real driver does, and keeps every event.
struct World {
    run: Run,
    events: Vec<Event>,
    now: Timestamp,
    whims: Vec<Whim>,
    step: usize,
    ids: u32,
    /// The calls that nobody answered when they were first asked about.
    deferred: BTreeSet<CallId>,
}

impl World {
    fn new(settings: RunSettings, whims: Vec<Whim>) -> Self {
        let mut world = Self {
            run: Run::new(RunId::new("r")),
            events: Vec::new(),
            now: Timestamp::from_millis(1_000),
            whims,
            step: 0,
            ids: 0,
            deferred: BTreeSet::new(),
        };
        world.record(
            None,
            EventBody::RunStarted {
                task: TaskId::new("t"),
                model: "m".into(),
                prompt: "do it".into(),
                attachments: Vec::new(),
                history: Vec::new(),
                system: "be good".into(),
                tools: Arc::from([]),
                settings,
                origin: Value::Null,
            },
        );
        world
    }

    fn record(&mut self, call: Option<&CallId>, body: EventBody) {
        let event = Event {
            v: VERSION,
            position: Position::Durable { seq: self.events.len() as u64 + 1 },
            ts: self.now,
            run: RunId::new("r"),
            parent: None,
            agent: AgentPath::default(),
            call: call.cloned(),
            secrets: BTreeSet::new(),
            body,
        };
        self.run.apply(&event);
        self.events.push(event);
    }

    fn whim(&mut self) -> Whim {
        let whim = self.whims[self.step % self.whims.len()].clone();
        self.step += 1;
        whim
    }

    fn wait(&mut self, millis: u32) {
        self.now = self.now.after(Duration::from_millis(u64::from(millis)));
    }

    /// Carries out one effect; tells whether there was one.
    fn perform(&mut self, effect: Effect) -> bool {
        let whim = self.whim();
        if whim.cancel {
            self.record(None, EventBody::RunCancelled { cause: Cause::Interrupted });
        }
        if whim.user {
            let message = Message::text(Role::User, "and this");
            self.record(None, EventBody::UserMessage { message });
        }
        match effect {
            Effect::Rest => return false,
            Effect::StartTurn(turn) => self.record(None, EventBody::TurnStarted { turn }),
            Effect::EndTurn(turn) => self.record(None, EventBody::TurnEnded { turn }),
            Effect::Exceed(budget) => {
                self.record(None, EventBody::BudgetExceeded { budget, of: None, why: None });
            }
            Effect::Tell(told) => self.tell(told),
            Effect::CallModel { purpose, max_output, .. } => self.model(purpose, max_output, &whim),
            Effect::Compact { max_output, .. } => self.model(Purpose::Compact, max_output, &whim),
            Effect::Shorten { kept_from, .. } => {
                let summary = "s".repeat(usize::from(whim.summary_bytes));
                let (before, after) =
                    (self.run.context_tokens(), self.run.after_compaction(kept_from, &summary));
                let summary = (after < before).then_some(summary);
                self.record(None, EventBody::Compaction { before, after, kept_from, summary });
            }
            Effect::Reflect(_) => {
                let verdict = [Verdict::Continue, Verdict::Replan, Verdict::Complete];
                let verdict = verdict[usize::from(whim.verdict)];
                self.record(
                    None,
                    EventBody::Reflection(Reflection {
                        verdict,
                        assessment: "so so".into(),
                        lessons: vec![],
                        next_focus: None,
                        tool_failures: vec![],
                    }),
                );
            }
            Effect::Plan(_) => self.record(None, EventBody::Plan { steps: vec![] }),
            Effect::CallTools(calls) => {
                if whim.user && whim.words {
                    self.spawn();
                }
                self.tools(calls, &whim);
            }
            Effect::AskToGoOn { call, tool_name } => {
                let (approved, by) = (whim.words, None);
                self.record(
                    Some(&call),
                    EventBody::ApprovalAnswered {
                        tool_name,
                        approved,
                        message: None,
                        by,
                        arguments: None,
                        rules: vec![],
                    },
                );
            }
            Effect::AwaitAgents => {
                self.wait(whim.pause_ms);
                self.end_children(1, Cause::Goal);
            }
            Effect::StopAgents => self.end_children(usize::MAX, Cause::Interrupted),
            Effect::Refuse { calls, .. } => {
                for call in calls {
                    self.end_call(&call, Err("not run"));
                }
            }
            Effect::Complete(call) => {
                let good = whim.words;
                self.end_call(&call, if good { Ok(json!("done")) } else { Err("wrong shape") });
            }
            Effect::CheckAnswer(words) => {
                let problems = if whim.words { vec![] } else { vec!["not that".into()] };
                self.record(None, EventBody::AnswerChecked { value: json!(words), problems });
            }
            Effect::Finish { outcome, answer } => {
                let usage = *self.run.spent();
                let parked = outcome.status == Status::Parked;
                let works = |child: &&Child| child.outcome.is_none();
                assert_eq!(self.run.children().values().find(works), None, "it ends alone");
                self.record(None, EventBody::RunEnded { outcome, answer, usage });
                if parked {
                    assert!(!self.run.questions().is_empty(), "nobody is asked anything");
                    assert_eq!(self.run.decide(self.now), Effect::Rest);
                    self.wait(86_400_000);
                    self.record(None, resumed(Usage::default()));
                }
            }
        }
        true
    }

    /// An agent begins to work beside the run.
    fn spawn(&mut self) {
        let child = RunId::new(format!("child-{}", self.step));
        let (background, continued) = (true, false);
        let name = "worker".to_owned();
        let inputs = serde_json::Map::new();
        self.record(None, EventBody::AgentSpawned { child, name, inputs, background, continued });
    }

    /// Some of the agents that work beside the run end.
    fn end_children(&mut self, count: usize, cause: Cause) {
        let works = |(_, child): &(&RunId, &Child)| child.outcome.is_none();
        let children: Vec<RunId> = self
            .run
            .children()
            .iter()
            .filter(works)
            .map(|(id, _)| id.clone())
            .take(count)
            .collect();
        assert!(!children.is_empty(), "there is nobody to wait for");
        for child in children {
            let usage = Usage { input_tokens: 1, ..Usage::default() };
            let usage = Usage { cost: Some(Money::default()), ..usage };
            let message = Some("done".to_owned());
            self.record(
                None,
                EventBody::AgentEnded { child, outcome: cause.into(), usage, message },
            );
        }
    }

    fn tell(&mut self, told: Told) {
        let message = "listen".to_owned();
        let body = match told {
            Told::BudgetIsShort { limit, used } => {
                EventBody::BudgetWarning { budget: limit, used, message }
            }
            Told::YouRepeatYourself { tool_name, times } => {
                EventBody::LoopDetected { tool_name, times, rescue: Rescue::Nudge, message }
            }
            Told::StartOver { tool_name, times } => {
                EventBody::LoopDetected { tool_name, times, rescue: Rescue::Restart, message }
            }
            Told::YouWereCutOff | Told::CallCompleteTask | Told::CallsWereDropped { .. } => {
                EventBody::Notice { message }
            }
        };
        self.record(None, body);
    }

    fn model(&mut self, purpose: Purpose, max_output: Option<u64>, whim: &Whim) {
        let notice = (purpose == Purpose::Grace).then(|| "finish".to_owned());
        let estimate = self.run.context_tokens();
        let model = "m".to_owned();
        self.record(None, request(model, purpose, notice, estimate));
        self.wait(whim.pause_ms);
        if whim.fails || whim.too_long {
            let cause = if whim.fails { Cause::ModelUnavailable } else { Cause::ContextWindow };
            return self.record(
                None,
                EventBody::ModelFailed {
                    purpose,
                    cause,
                    error: "server".into(),
                    message: "no".into(),
                    status: None,
                    hint: None,
                    partial: None,
                    usage: Usage::default(),
                },
            );
        }
        let output = u64::from(whim.tokens.1).min(max_output.unwrap_or(u64::MAX));
        // A provider counts in its own way, which may be more than was expected.
        let input = estimate + u64::from(whim.tokens.0) / 4;
        let mut usage = Usage { input_tokens: input, output_tokens: output, ..Usage::default() };
        usage.cost = self.run.settings().model.price.map(|price| price.of(&usage));
        let message = self.answer(whim);
        let stop = match whim.stop {
            0 => StopReason::Length,
            1 => StopReason::Refused,
            _ => StopReason::Done,
        };
        self.record(None, answer_of(purpose, message, usage, stop));
    }

    fn answer(&mut self, whim: &Whim) -> Message {
        let mut parts = Vec::new();
        if whim.words {
            parts.push(Part::text(format!("words {}", whim.tokens.0)));
        }
        for (tool, _) in &whim.calls {
            self.ids += 1;
            let id = format!("c{}", self.ids);
            parts.push(Part::ToolCall(ToolCall::new(
                id.as_str(),
                format!("tool{tool}"),
                json!({}),
            )));
        }
        if whim.complete {
            self.ids += 1;
            let id = format!("c{}", self.ids);
            parts.push(Part::ToolCall(ToolCall::new(id.as_str(), COMPLETE_TASK, json!({}))));
        }
        Message { role: Role::Assistant, parts }
    }

    /// Runs calls; they end in an order of the world's own choice.
    fn tools(&mut self, mut calls: Vec<ToolCall>, whim: &Whim) {
        let mut order = whim.order;
        let mut working = 0;
        while !calls.is_empty() {
            let index = usize::try_from(order).unwrap_or_default() % calls.len();
            order = order.rotate_right(7);
            let call = calls.remove(index);
            if whim.asks {
                self.record(Some(&call.id), asked(&call.name));
                self.wait(3_600_000);
                // Every other question is answered only when it is asked the second time.
                if order & 1 == 1 && self.deferred.insert(call.id.clone()) {
                    let tool_name = call.name.clone();
                    self.record(
                        Some(&call.id),
                        EventBody::ToolCallDeferred {
                            tool_name,
                            reason: "nobody answered".to_owned(),
                        },
                    );
                    continue;
                }
                self.record(Some(&call.id), answered(&call.name));
            }
            let started = EventBody::ToolCallStarted {
                tool_name: call.name.clone(),
                description: String::new(),
                effects: Effects::default(),
                repeat: repeat_of(&call.name),
            };
            self.record(Some(&call.id), started);
            self.wait(whim.pause_ms / 8);
            let good = whim.calls.get(working).is_none_or(|(_, good)| *good);
            working += 1;
            self.end_call(&call, if good { Ok(json!(1)) } else { Err("broken") });
        }
    }

    fn end_call(&mut self, call: &ToolCall, end: Result<Value, &str>) {
        let (tool_name, duration_ms) = (call.name.clone(), Millis::default());
        let body = match end {
            Ok(value) => EventBody::ToolCallCompleted {
                tool_name,
                result: Arc::new(value),
                content: vec![Part::text(format!("answer to {}", call.id))],
                display: None,
                duration_ms,
            },
            Err(why) => EventBody::ToolCallFailed {
                tool_name,
                error: ToolError::failed(why),
                content: vec![Part::text(format!("answer to {}", call.id))],
                duration_ms,
            },
        };
        self.record(Some(&call.id), body);
        // Somebody says it again; the first answer counts.
        let (tool_name, content) = (call.name.clone(), vec![Part::text("again")]);
        let result = Arc::new(json!("again"));
        let again = EventBody::ToolCallCompleted {
            tool_name,
            result,
            content,
            display: None,
            duration_ms: Millis::default(),
        };
        if call.name != COMPLETE_TASK {
            self.record(Some(&call.id), again);
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
    fn check_answers(&self) {
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
        let mut late = 0;
        for event in &self.events {
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
        let allowed = 1 + self.events.iter().filter(resumed).count();
        assert!(
            late <= allowed,
            "{late} requests after the time was up; only the last answer, or one that was lost, may be one"
        );
    }
}

fn answer_of(purpose: Purpose, message: Message, usage: Usage, stop: StopReason) -> EventBody {
    EventBody::ModelResponse { purpose, message, usage, stop, dropped_calls: 0 }
}

/// What may be made again, by the name of the tool.
fn request(model: String, purpose: Purpose, notice: Option<String>, estimate: u64) -> EventBody {
    EventBody::ModelRequest { model, purpose, notice, estimate, reserved: None }
}

fn repeat_of(tool_name: &str) -> Repeat {
    match tool_name {
        "tool0" => Repeat::Pure,
        "tool1" => Repeat::Idempotent,
        _ => Repeat::Unsafe,
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

/// Runs until it ends. It must: the number of steps is bounded by its budget.
fn run_to_end(settings: RunSettings, whims: Vec<Whim>) -> World {
    let mut world = World::new(settings, whims);
    for _ in 0..2_000 {
        let effect = world.run.decide(world.now);
        if !world.perform(effect) {
            return world;
        }
    }
    panic!("it does not end: {:#?}", world.run);
}

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

    fn go_on(&mut self) {
        for _ in 0..2_000 {
            let effect = self.run.decide(self.now);
            if !self.perform(effect) {
                return;
            }
        }
        panic!("it does not end: {:#?}", self.run);
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

    fn ended_with_answer(&self) -> bool {
        let ended = self.events.iter().rev().find_map(|event| match &event.body {
            EventBody::RunEnded { answer, .. } => Some(answer.is_some()),
            _ => None,
        });
        ended.unwrap_or_default()
    }
}

/// A world that does what it is told.
fn plain() -> Whim {
    Whim {
        calls: vec![],
        words: true,
        complete: false,
        stop: 7,
        fails: false,
        too_long: false,
        tokens: (0, 10),
        order: 0,
        asks: false,
        pause_ms: 0,
        cancel: false,
        user: false,
        verdict: 0,
        summary_bytes: 0,
    }
}

fn calling() -> Whim {
    Whim { calls: vec![(1, true)], words: false, ..plain() }
}

/// Runs with the model's whims in order; what follows one call of the model goes by its whim, too.
fn outcome_of(settings: RunSettings, model: Vec<Whim>) -> (World, Outcome) {
    let mut world = World::new(settings, vec![plain()]);
    let mut model = model.into_iter();
    for _ in 0..500 {
        let effect = world.run.decide(world.now);
        if let Effect::CallModel { .. } = &effect {
            world.whims = vec![model.next().unwrap_or_else(plain)];
        }
        if !world.perform(effect) {
            break;
        }
    }
    let outcome = world.run.outcome().unwrap().clone();
    (world, outcome)
}

fn with_turns(turns: u32) -> RunSettings {
    RunSettings { budget: Budget { turns, ..Budget::default() }, ..RunSettings::default() }
}

#[test]
fn what_is_answered_in_the_last_turn_is_recovered() {
    let (world, outcome) = outcome_of(with_turns(2), vec![calling(), plain()]);
    assert_eq!((outcome.cause, outcome.recovered), (Cause::MaxTurns, true));
    assert!(world.ended_with_answer());
    let (_, outcome) = outcome_of(with_turns(3), vec![calling(), plain()]);
    assert_eq!((outcome.cause, outcome.recovered), (Cause::Goal, false));
}

#[test]
fn waiting_for_a_person_takes_no_time() {
    let slow = Whim { asks: true, ..calling() };
    let (world, outcome) = outcome_of(with_turns(9), vec![slow.clone(), slow, plain()]);
    assert_eq!(outcome.cause, Cause::Goal, "hours of waiting do not count");
    assert!(world.run.elapsed(world.now) < Duration::from_secs(1));
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

fn asked(tool_name: &str) -> EventBody {
    EventBody::ApprovalAsked {
        tool_name: tool_name.to_owned(),
        kind: crate::Kind::Edit,
        description: String::new(),
        arguments: Arc::default(),
        preview: None,
        reason: String::new(),
        rules: Vec::new(),
        until: None,
        fingerprint: String::new(),
    }
}

fn answered(tool_name: &str) -> EventBody {
    EventBody::ApprovalAnswered {
        tool_name: tool_name.to_owned(),
        approved: true,
        message: None,
        by: None,
        arguments: None,
        rules: vec![RuleSpec::tool(Permission::Allow, tool_name)],
    }
}

#[test]
fn the_time_in_which_a_call_asks_a_person_does_not_count() {
    let mut settings = with_turns(9);
    settings.budget.time_ms = Millis::new(Duration::from_mins(5));
    let mut world = World::new(settings, vec![plain()]);
    world.record(None, EventBody::TurnStarted { turn: 1 });
    let call = ToolCall::new("a", "tool2", json!({}));
    let parts = vec![Part::ToolCall(call.clone())];
    let message = Message { role: Role::Assistant, parts };
    let (purpose, usage, stop) = (Purpose::Main, Usage::default(), StopReason::Done);
    world
        .record(None, EventBody::ModelResponse { purpose, message, usage, stop, dropped_calls: 0 });
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
    let mut world = World::new(with_turns(9), vec![plain()]);
    world.record(None, EventBody::TurnStarted { turn: 1 });
    let call = |id: &str| ToolCall::new(id, "tool2", json!({}));
    let calls = [call("a"), call("b")];
    let parts = calls.iter().cloned().map(Part::ToolCall).collect();
    let message = Message { role: Role::Assistant, parts };
    let (purpose, usage, stop) = (Purpose::Main, Usage::default(), StopReason::Done);
    world.record(None, answer_of(purpose, message, usage, stop));
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
        let mut world = World::new(with_turns(9), vec![plain()]);
        world.record(None, EventBody::TurnStarted { turn: 1 });
        let call = ToolCall::new("a", "tool2", json!({}));
        let parts = vec![Part::ToolCall(call.clone())];
        let message = Message { role: Role::Assistant, parts };
        let (purpose, usage, stop) = (Purpose::Main, Usage::default(), StopReason::Done);
        world.record(None, answer_of(purpose, message, usage, stop));
        world.record(Some(&call.id), asked("tool2"));
        world.record(None, EventBody::RunCancelled { cause: Cause::Interrupted });
        let (tool_name, reason) = ("tool2".to_owned(), "it was stopped".to_owned());
        world.record(Some(&call.id), EventBody::ToolCallDeferred { tool_name, reason });
        let effect = world.run.decide(world.now);
        let Effect::Finish { outcome, answer: None } = effect else { panic!("{effect:?}") };
        assert_eq!(outcome.cause, Cause::Interrupted);
        world.record(None, EventBody::RunEnded { outcome, answer: None, usage });
        let goes_on = EventBody::RunResumed {
            model: None,
            settings: None,
            lost: usage,
            anything_else,
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

fn resumed(lost: Usage) -> EventBody {
    EventBody::RunResumed {
        model: None,
        settings: None,
        lost,
        anything_else: false,
        origin: Value::Null,
    }
}

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
    let mut world = World::new(with_turns(9), vec![plain()]);
    world.record(None, EventBody::TurnStarted { turn: 1 });
    let call = |id: &str, tool: &str| ToolCall::new(id, tool, json!({}));
    let calls = [call("a", "tool0"), call("b", "tool1"), call("c", "tool2"), call("d", "tool3")];
    let parts = calls.iter().cloned().map(Part::ToolCall).collect();
    let message = Message { role: Role::Assistant, parts };
    let (purpose, usage, stop) = (Purpose::Main, Usage::default(), StopReason::Done);
    world.record(None, answer_of(purpose, message, usage, stop));
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

/// Starts a run whose model asks for these calls at once.
fn asking_for(calls: &[ToolCall]) -> World {
    let mut world = World::new(with_turns(9), vec![plain()]);
    world.record(None, EventBody::TurnStarted { turn: 1 });
    let parts = calls.iter().cloned().map(Part::ToolCall).collect();
    let message = Message { role: Role::Assistant, parts };
    world.record(None, answer_of(Purpose::Main, message, Usage::default(), StopReason::Done));
    world
}

fn denied(tool_name: &str) -> EventBody {
    EventBody::ToolCallDenied {
        tool_name: tool_name.to_owned(),
        error: ToolError::permission("no"),
        content: vec![Part::text("no")],
        duration_ms: Millis::default(),
    }
}

/// Which of the calls of one answer ends last is chance; how the run ends is not.
#[test]
fn what_was_refused_counts_whatever_the_order_of_the_calls() {
    let calls = [ToolCall::new("a", "look", json!({})), ToolCall::new("b", "push", json!({}))];
    for (asked, first) in [([0, 1], 0), ([0, 1], 1), ([1, 0], 0), ([1, 0], 1)] {
        let mut world = asking_for(&asked.map(|index| calls[index].clone()));
        for which in [first, 1 - first] {
            match which {
                0 => world.end_call(&calls[0], Ok(json!(1))),
                _ => world.record(Some(&calls[1].id), denied("push")),
            }
        }
        world.go_on();
        assert_eq!(world.run.outcome().unwrap().cause, Cause::Goal, "{asked:?} {first}");
        assert_eq!(world.run.refused().get("push"), Some(&1));
    }
    let mut world = asking_for(&calls[1..]);
    world.record(Some(&calls[1].id), denied("push"));
    world.go_on();
    let outcome = world.run.outcome().unwrap();
    assert_eq!((outcome.cause, outcome.recovered), (Cause::Denied, true), "nothing was done");
}

/// An agent in the background that was refused counts when the run hears of it, not when it happens to end.
#[test]
fn what_an_agent_in_the_background_was_refused_counts_when_it_is_told() {
    for ends_first in [true, false] {
        let call = ToolCall::new("a", "look", json!({}));
        let mut world = asking_for(std::slice::from_ref(&call));
        world.spawn();
        if ends_first {
            world.end_children(1, Cause::Denied);
        }
        world.end_call(&call, Ok(json!(1)));
        if !ends_first {
            world.end_children(1, Cause::Denied);
        }
        world.go_on();
        assert_eq!(world.run.outcome().unwrap().cause, Cause::Denied, "{ends_first}");
    }
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
