//! A simulated world drives the machine: a model, tools, people and a clock that do anything they like,
//! in any order. Whatever they do, the promises hold.

mod any;
mod endings;
mod promises;
mod refused;
mod stopped;
mod taken_up;
mod waiting;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Budget, COMPLETE_TASK, Child, Effect, Limit, Purpose, Run, RunSettings, Told};
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
use crate::usage::{Money, Usage};

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
    /// The ledger of the tree has nothing for a request, or nothing in time.
    left: Left,
    /// An answer breaks off, and the model is asked again.
    breaks_off: bool,
}

/// What others left of what the model is asked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Enough,
    TooLittle,
    NotInTime,
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
    /// How many answers in a row broke off.
    broken: u32,
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
            broken: 0,
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
        let refused = match whim.left {
            Left::Enough => None,
            Left::TooLittle => Some((Limit::Tokens, Some(RunId::new("above")))),
            Left::NotInTime => Some((Limit::Time, None)),
        };
        if let Some((budget, of)) = refused {
            return self.record(None, EventBody::BudgetExceeded { budget, of, why: None });
        }
        let notice = (purpose == Purpose::Grace).then(|| "finish".to_owned());
        let estimate = self.run.context_tokens();
        let model = "m".to_owned();
        self.record(None, request(model, purpose, notice, estimate));
        self.wait(whim.pause_ms);
        if whim.breaks_off && self.broken < 2 {
            self.broken += 1;
            let (attempt, delay_ms) = (self.broken + 1, Millis::default());
            let (reason, usage) = ("it broke off".to_owned(), Usage::default());
            return self.record(None, EventBody::ModelRetry { attempt, delay_ms, reason, usage });
        }
        self.broken = 0;
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
                files: Vec::new(),
            },
            Err(why) => EventBody::ToolCallFailed {
                tool_name,
                error: ToolError::failed(why),
                content: vec![Part::text(format!("answer to {}", call.id))],
                duration_ms,
                files: Vec::new(),
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
            files: Vec::new(),
        };
        if call.name != COMPLETE_TASK {
            self.record(Some(&call.id), again);
        }
    }

    /// Goes on until it ends. It must: the number of steps is bounded by its budget.
    fn go_on(&mut self) {
        for _ in 0..2_000 {
            let effect = self.run.decide(self.now);
            if !self.perform(effect) {
                return;
            }
        }
        panic!("it does not end: {:#?}", self.run);
    }
}

fn answer_of(purpose: Purpose, message: Message, usage: Usage, stop: StopReason) -> EventBody {
    EventBody::ModelResponse { purpose, message, usage, stop, dropped_calls: 0 }
}

fn request(model: String, purpose: Purpose, notice: Option<String>, estimate: u64) -> EventBody {
    EventBody::ModelRequest { model, purpose, notice, estimate, reserved: None }
}

/// What may be made again, by the name of the tool.
fn repeat_of(tool_name: &str) -> Repeat {
    match tool_name {
        "tool0" => Repeat::Pure,
        "tool1" => Repeat::Idempotent,
        _ => Repeat::Unsafe,
    }
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
        left: Left::Enough,
        breaks_off: false,
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

/// Starts a run whose model asks for these calls at once.
fn asking_for(calls: &[ToolCall]) -> World {
    asking_within(with_turns(9), calls)
}

fn asking_within(settings: RunSettings, calls: &[ToolCall]) -> World {
    let mut world = World::new(settings, vec![plain()]);
    world.record(None, EventBody::TurnStarted { turn: 1 });
    let parts = calls.iter().cloned().map(Part::ToolCall).collect();
    let message = Message { role: Role::Assistant, parts };
    world.record(None, answer_of(Purpose::Main, message, Usage::default(), StopReason::Done));
    world
}

fn resumed(lost: Usage) -> EventBody {
    EventBody::RunResumed {
        model: None,
        settings: None,
        lost,
        anything_else: false,
        redirected: false,
        again: Vec::new(),
        origin: Value::Null,
    }
}
