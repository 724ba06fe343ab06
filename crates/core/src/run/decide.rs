//! Says what a run does next. This may change between versions: only the next step is ever decided.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::Value;

use super::batch::Batch;
use super::{Due, Ending, Exceeded, Limit, OnStuck, Phase, Purpose, Run};
use crate::id::CallId;
use crate::ledger::{MIN_OUTPUT, affordable, dearest};
use crate::message::ToolCall;
use crate::outcome::{Cause, Outcome, Status};
use crate::time::Timestamp;
use crate::usage::{Money, Usage};

/// The longest answer that is reserved where nobody knows how long a model's answers get.
const UNKNOWN_MAX_OUTPUT: u64 = 8_192;
/// How much of a budget is used when the model is told.
const WARN_AT: f64 = 0.8;
/// How much of the window stays as it is when the conversation is summed up, in percent.
const KEEP_PERCENT: u64 = 20;

/// What there is to say when even a summary would not help.
pub(super) const TOO_LONG: &str =
    "the conversation is too long for the model and cannot be made shorter";

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Record that a turn begins.
    StartTurn(u32),
    /// Record that a turn ended.
    EndTurn(u32),
    /// Record that a limit is reached.
    Exceed(Limit),
    /// Tell the model something, and record it.
    Tell(Told),
    /// Ask the model.
    CallModel {
        /// What for.
        purpose: Purpose,
        /// The longest answer there is room for, where that is limited.
        max_output: Option<u64>,
        /// Whether tools may be called. For a grace call, only completing the task may.
        with_tools: bool,
    },
    /// Ask the model to sum up everything before this message.
    Compact {
        /// The first message that stays.
        kept_from: usize,
        /// The longest answer there is room for, where that is limited.
        max_output: Option<u64>,
    },
    /// Record that a summary takes the place of everything before this message, if that is shorter.
    Shorten {
        /// The first message that stays.
        kept_from: usize,
        /// What the model summed up.
        summary: String,
    },
    /// Record what the model found when it looked back.
    Reflect(String),
    /// Record the plan the model made.
    Plan(String),
    /// Ask a person whether a run goes on that makes no progress. The answer is recorded for this call.
    AskToGoOn {
        /// Stands for the question.
        call: CallId,
        /// The tool that was called again and again.
        tool_name: String,
    },
    /// Wait until an agent that works on its own has ended, or somebody says something.
    AwaitAgents,
    /// Stop the agents that work on their own, and wait until they have ended.
    StopAgents,
    /// Run these calls.
    CallTools(Vec<ToolCall>),
    /// Answer these calls without running them.
    Refuse {
        /// The calls.
        calls: Vec<ToolCall>,
        /// Why they do not run.
        why: Refusal,
    },
    /// Check whether this completes the task, and answer the call.
    Complete(ToolCall),
    /// Check whether this answer has the shape it has to have.
    CheckAnswer(String),
    /// Record that the run ended.
    Finish {
        /// How.
        outcome: Outcome,
        /// Its answer.
        answer: Option<Value>,
    },
    /// Nothing: it has not begun, or it is over.
    Rest,
}

/// Something the model is told by the runtime.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// A budget is nearly used up.
    BudgetIsShort {
        /// Which.
        limit: Limit,
        /// How much of it is used, from 0 to 1.
        used: f64,
    },
    /// It does the same again and again.
    YouRepeatYourself {
        /// The tool it calls.
        tool_name: String,
        /// How often.
        times: u32,
    },
    /// It still does the same, and starts over from a summary.
    StartOver {
        /// The tool it calls.
        tool_name: String,
        /// How often.
        times: u32,
    },
    /// Its answer reached the maximum length.
    YouWereCutOff,
    /// It answered in words, which reach nobody.
    CallCompleteTask,
    /// Its answer held more calls than are taken of one.
    CallsWereDropped {
        /// How many were not taken.
        dropped: u32,
    },
}

/// Why a call is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The run was stopped.
    Cancelled,
    /// It waited when the run was stopped, and the run has something else to do now.
    GivenUp,
    /// It began, and whoever ran it is gone: nobody knows how it ended, and it may do harm to repeat it.
    Interrupted,
    /// It began in the run that this one is a copy of, which may have gone on with it; it may do harm to repeat it.
    Elsewhere,
    /// The run is a copy of another, and the user continued it in another way before the call was made.
    Redirected,
    /// A limit is reached.
    Limit(Limit),
    /// Only completing the task was on offer.
    OnlyCompletion,
    /// The answer was cut off, so the call is not whole.
    CutOff,
    /// The task is complete already.
    AlreadyComplete,
    /// A call beside it failed, so it is too early to say that the task is done.
    CallFailed(String),
}

/// What is done for a run that makes no progress although it was told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Help {
    StartOver,
    Ask,
}

impl Run {
    /// Says what to do next.
    pub fn decide(&self, now: Timestamp) -> Effect {
        match &self.phase {
            _ if self.outcome.is_some() => Effect::Rest,
            Phase::New | Phase::Ended => Effect::Rest,
            // It stops where it is: the process that resumes it does the same as after a kill.
            _ if self.is_interrupted() => self.stop(now),
            // The process ended before the answer came, or the answer broke off: it is asked again, if there still
            // is time.
            Phase::Asking(purpose) if self.is_asked_again(*purpose, now) => self.ask(*purpose),
            Phase::Concluding(purpose, words) => self.conclude(*purpose, words.clone()),
            Phase::Calling(batch) => self.answer_calls(batch, now),
            Phase::Checking(words) => Effect::CheckAnswer(words.clone()),
            Phase::Ready | Phase::Asking(_) => self.next(now),
        }
    }

    /// Tells whether a signal or the user stops the run, so that it can be resumed where it is. A run whose caller is
    /// out of time is not resumed.
    pub const fn is_interrupted(&self) -> bool {
        matches!(self.cancelled, Some(Cause::Interrupted | Cause::Terminated))
    }

    fn stop(&self, now: Timestamp) -> Effect {
        match self.over() {
            Some(outcome) => self.finish(outcome, now),
            None => Effect::Rest,
        }
    }

    fn is_asked_again(&self, purpose: Purpose, now: Timestamp) -> bool {
        let in_time = match purpose {
            Purpose::Main => self.exceeded.is_none() && !self.is_late(now),
            Purpose::Grace => true,
            Purpose::Compact | Purpose::Reflect | Purpose::Plan => false,
        };
        in_time && self.over().is_none()
    }

    fn next(&self, now: Timestamp) -> Effect {
        let over = self.over();
        if self.turn.open && (self.turn.answered || over.is_some()) {
            return Effect::EndTurn(self.turn.number);
        }
        if let Some(outcome) = over {
            return self.finish(outcome, now);
        }
        if self.exceeded.is_some() || self.due.contains(&Due::Finish) {
            return self.turn_for(Purpose::Grace);
        }
        if let Some(limit) = self.reached(now) {
            return Effect::Exceed(limit);
        }
        if let Some(told) = self.to_tell(now).filter(|_| !self.turn.open) {
            return Effect::Tell(told);
        }
        if self.is_stuck() && self.rescue() == Some(Help::Ask) {
            let tool_name = self.repetition.tool_name.clone();
            return Effect::AskToGoOn { call: self.rescue_call(), tool_name };
        }
        if let Some(effect) = self.shorten() {
            return effect;
        }
        for (due, purpose) in [(Due::Reflect, Purpose::Reflect), (Due::Plan, Purpose::Plan)] {
            if self.due.contains(&due) {
                return self.ask(purpose);
            }
        }
        self.turn_for(Purpose::Main)
    }

    /// Ends the run, when the agents that it left working have ended.
    fn finish(&self, outcome: Outcome, now: Timestamp) -> Effect {
        // What was denied on the way is no reason to stop those who work.
        let is_answered =
            outcome.cause == Cause::Goal || (outcome.cause == Cause::Denied && outcome.recovered);
        let waits = is_answered || outcome.cause == Cause::AwaitsApproval;
        if self.children.work_on() {
            let in_time = self.exceeded.is_none() && !self.is_late(now);
            return if waits && in_time { Effect::AwaitAgents } else { Effect::StopAgents };
        }
        let parked = self.children.parked();
        if parked > 0 && is_answered {
            return self.park(parked);
        }
        let answered = outcome.cause == Cause::Goal || outcome.recovered;
        Effect::Finish { outcome, answer: self.answer.clone().filter(|_| answered) }
    }

    fn conclude(&self, purpose: Purpose, words: String) -> Effect {
        match purpose {
            Purpose::Reflect => Effect::Reflect(words),
            Purpose::Plan => Effect::Plan(words),
            // The conversation is as it was when the summary was asked for, so the cut is the same.
            Purpose::Compact | Purpose::Main | Purpose::Grace => {
                Effect::Shorten { kept_from: self.cut().unwrap_or_default(), summary: words }
            }
        }
    }

    fn turn_for(&self, purpose: Purpose) -> Effect {
        if self.turn.open { self.ask(purpose) } else { Effect::StartTurn(self.turn.number + 1) }
    }

    /// Returns how the run ends, if it ends now.
    fn over(&self) -> Option<Outcome> {
        if let Some(cause) = self.cancelled {
            return Some(self.early(cause));
        }
        if let Some(failure) = &self.failure {
            return Some(self.early(failure.cause).because(&failure.message));
        }
        match (self.grace, &self.answer) {
            // What the user said meanwhile wants an answer as well.
            (None, Some(_)) if !self.inbox.is_empty() => {}
            (None, Some(_)) if self.denied.last => {
                return Some(Outcome { recovered: true, ..Outcome::from(Cause::Denied) });
            }
            (None, Some(_)) => return Some(Cause::Goal.into()),
            (Some(cause), Some(_)) => {
                return Some(Outcome { recovered: true, ..Outcome::from(cause) });
            }
            (Some(cause), None) if self.turn.answered => return Some(self.early(cause)),
            (_, None) => {}
        }
        if self.due.contains(&Due::Shorten) && self.conversation.cut(0).is_none() {
            return Some(self.early(Cause::ContextWindow).because(TOO_LONG));
        }
        if self.is_stuck() && self.rescue().is_none() {
            return Some(self.early(Cause::Loop));
        }
        let cause = self.exceeded.as_ref().map(|exceeded| exceeded.limit.cause());
        let cause =
            cause.or_else(|| self.due.contains(&Due::Finish).then_some(Cause::NoCompletion));
        cause.filter(|_| !self.has_room_for_grace()).map(|cause| self.early(cause))
    }

    fn early(&self, cause: Cause) -> Outcome {
        let partial = self.answer.clone().or_else(|| self.last_words.clone().map(Value::String));
        let outcome = Outcome { partial, ..Outcome::from(cause) };
        if let Some(Exceeded { of: Some(of), why, .. }) = &self.exceeded
            && cause.status() == Status::Limited
        {
            return outcome.because(match why {
                Some(why) => format!("what is left further up is too little for a request: {why}"),
                None => format!("what agents of the run `{of}` further up may use is used up"),
            });
        }
        if cause == Cause::MaxCost && self.settings.model.price.is_none() {
            return outcome.because(format!("no price is known for `{}`", self.model));
        }
        outcome
    }

    fn has_room_for_grace(&self) -> bool {
        let open_turn = self.turn.open && !self.turn.answered;
        let turns = open_turn || self.turns_used() < self.settings.budget.turns;
        let leaves_room =
            |exceeded: &Exceeded| !exceeded.is_final && exceeded.limit.leaves_room_for_grace();
        turns && self.exceeded.as_ref().is_none_or(leaves_room) && self.allowance().is_ok()
    }

    /// Returns the limit that stands in the way of another turn.
    fn reached(&self, now: Timestamp) -> Option<Limit> {
        let budget = &self.settings.budget;
        if !self.turn.open && self.turns_used() >= budget.working_turns() {
            return Some(Limit::Turns);
        }
        if self.is_late(now) {
            return Some(Limit::Time);
        }
        if budget.tool_calls.is_some_and(|limit| self.tool_calls_used() >= limit) {
            return Some(Limit::ToolCalls);
        }
        self.allowance().err()
    }

    /// Returns how many turns began since it last went on after its end: those that its limit is about.
    pub const fn turns_used(&self) -> u32 {
        self.turn.number.saturating_sub(self.before.turns)
    }

    /// Returns how many calls of tools began since it last went on after its end: those that its limit is about.
    pub const fn tool_calls_used(&self) -> u32 {
        self.tool_calls.saturating_sub(self.before.tool_calls)
    }

    fn is_late(&self, now: Timestamp) -> bool {
        self.elapsed(now) >= self.settings.budget.working_time()
    }

    /// The one place where a use of the model is checked against what is left: returns the longest
    /// answer there is room for.
    pub(super) fn allowance(&self) -> Result<Option<u64>, Limit> {
        let budget = &self.settings.budget;
        let input = self.conversation.tokens;
        let mut room: Option<u64> = None;
        if let Some(limit) = budget.tokens {
            let used = self.spent.input_tokens.saturating_add(self.spent.output_tokens);
            let left = limit.saturating_sub(used).saturating_sub(input);
            room = Some(enough(left, Limit::Tokens)?);
        }
        if let Some(limit) = budget.cost {
            let left = self.affordable_output(limit, input).ok_or(Limit::Cost)?;
            let left = enough(left, Limit::Cost)?;
            room = Some(room.map_or(left, |room| room.min(left)));
        }
        let longest = self.settings.model.max_output.unwrap_or(UNKNOWN_MAX_OUTPUT);
        Ok(room.map(|room| room.min(longest)))
    }

    /// Returns how many tokens of an answer the money left pays for, after the question. Without a
    /// price nothing is affordable.
    fn affordable_output(&self, limit: Money, input: u64) -> Option<u64> {
        let price = self.settings.model.price?;
        let spent = match self.spent.cost {
            Some(cost) => cost.amount(),
            None if self.spent.is_empty() => Decimal::ZERO,
            None => return None,
        };
        let asked = Usage { input_tokens: input, cache_write_tokens: input, ..Usage::default() };
        let question = dearest(price, asked).amount();
        affordable(limit.amount().checked_sub(spent)?.checked_sub(question)?, price)
    }

    fn ask(&self, purpose: Purpose) -> Effect {
        match self.allowance() {
            Err(limit) => Effect::Exceed(limit),
            Ok(max_output) => Effect::CallModel {
                purpose,
                max_output,
                with_tools: purpose == Purpose::Main && !self.only_answers(),
            },
        }
    }

    /// Tells whether it repeats itself although it was told or started over, or there is no help left.
    fn is_stuck(&self) -> bool {
        let times = self.settings.max_repeats;
        let is_told = self.repetition.told && !self.restarted;
        let was_helped = self.restarted || self.rescues >= self.settings.max_rescues;
        self.repetition.repeats(if is_told { times + 1 } else { times }) && (is_told || was_helped)
    }

    /// Returns what can still be done for a run that was told and makes no progress.
    fn rescue(&self) -> Option<Help> {
        if self.rescues >= self.settings.max_rescues {
            return None;
        }
        let can_start_over = !self.restarted && self.conversation.cut(0).is_some();
        match self.settings.on_stuck {
            OnStuck::Restart | OnStuck::Ask if can_start_over => Some(Help::StartOver),
            OnStuck::Ask => Some(Help::Ask),
            OnStuck::Restart | OnStuck::End => None,
        }
    }

    /// Returns what stands for the question whether it goes on.
    pub(super) fn rescue_call(&self) -> CallId {
        CallId::new(format!("stuck_{}_{}", self.turn.number, self.rescues))
    }

    fn to_tell(&self, now: Timestamp) -> Option<Told> {
        if let Some(remark) = self.remark() {
            return Some(remark);
        }
        let times = self.settings.max_repeats;
        let tool_name = self.repetition.tool_name.clone();
        if !self.is_stuck() && !self.repetition.told && self.repetition.repeats(times) {
            return Some(Told::YouRepeatYourself { tool_name, times });
        }
        if self.is_stuck() && self.rescue() == Some(Help::StartOver) {
            return Some(Told::StartOver { tool_name, times });
        }
        let short = |(limit, used): (Limit, f64)| {
            (used >= WARN_AT && !self.warned.contains(&limit))
                .then_some(Told::BudgetIsShort { limit, used })
        };
        self.used(now).into_iter().flatten().find_map(short)
    }

    /// Returns what there is to say about the model's last answer, one thing at a time.
    pub(super) fn remark(&self) -> Option<Told> {
        if self.due.contains(&Due::SayCutOff) {
            return Some(Told::YouWereCutOff);
        }
        if self.due.contains(&Due::Remind) {
            return Some(Told::CallCompleteTask);
        }
        let dropped = self.dropped_calls;
        (dropped > 0).then_some(Told::CallsWereDropped { dropped })
    }

    /// Returns how much of each budget is used, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a share does not have to be exact")]
    fn used(&self, now: Timestamp) -> [Option<(Limit, f64)>; 5] {
        let budget = &self.settings.budget;
        let tokens = self.spent.input_tokens.saturating_add(self.spent.output_tokens);
        let spent = self.spent.cost.unwrap_or_default().amount();
        let turns = f64::from(self.turns_used()) / f64::from(budget.turns.max(1));
        let time = self.elapsed(now).as_secs_f64() / budget.time_ms.get().as_secs_f64().max(0.001);
        let share = |limit: Money| {
            let limit = limit.amount();
            spent.checked_div(limit).and_then(|share| share.to_f64())
        };
        [
            // Few turns are over before a warning could help.
            (budget.turns >= 5).then_some((Limit::Turns, turns)),
            Some((Limit::Time, time)),
            budget.tokens.map(|limit| (Limit::Tokens, tokens as f64 / limit.max(1) as f64)),
            budget.cost.and_then(share).map(|used| (Limit::Cost, used)),
            budget.tool_calls.map(|limit| {
                (Limit::ToolCalls, f64::from(self.tool_calls_used()) / f64::from(limit.max(1)))
            }),
        ]
    }

    /// Decides whether the conversation is summed up before the next turn.
    fn shorten(&self) -> Option<Effect> {
        let tokens = self.conversation.tokens;
        let too_long = self.due.contains(&Due::Shorten) || self.due.contains(&Due::StartOver);
        let window = self.window();
        let threshold = self.compacts_at(window);
        let refused = self.compaction_refused_at;
        let grown = refused.is_none_or(|at| tokens > at.saturating_add(window / 10))
            && self.compacted_in != Some(self.turn.number);
        if !too_long && (self.settings.model.window.is_none() || tokens <= threshold || !grown) {
            return None;
        }
        match (self.cut(), self.allowance()) {
            (None, _) if self.due.contains(&Due::StartOver) => None,
            (_, Err(limit)) => Some(Effect::Exceed(limit)),
            // What does not fit the model cannot be summed up by it.
            (Some(kept_from), Ok(_)) if self.is_too_long_to_sum_up(kept_from) => {
                Some(Effect::Shorten { kept_from, summary: String::new() })
            }
            (Some(kept_from), Ok(max_output)) => Some(Effect::Compact { kept_from, max_output }),
            (None, Ok(_)) => None,
        }
    }

    /// Returns how many tokens a conversation has at most that is not compacted, for a window of this size.
    pub(super) const fn compacts_at(&self, window: u64) -> u64 {
        window / 100 * self.settings.compact_at_percent as u64
    }

    fn is_too_long_to_sum_up(&self, kept_from: usize) -> bool {
        let tokens = self.conversation.tokens_before(kept_from);
        self.settings.model.window.is_some_and(|window| tokens > window)
    }

    /// Returns the window of the model; what there is, where nobody knows it or it proved to be less.
    fn window(&self) -> u64 {
        let known = self.settings.model.window.filter(|_| !self.due.contains(&Due::Shorten));
        known.unwrap_or(self.conversation.tokens)
    }

    /// Returns the first message that stays when the conversation is summed up.
    fn cut(&self) -> Option<usize> {
        let too_long = self.due.contains(&Due::Shorten) || self.due.contains(&Due::StartOver);
        self.conversation.cut(if too_long { 0 } else { self.window() / 100 * KEEP_PERCENT })
    }

    fn answer_calls(&self, batch: &Batch, now: Timestamp) -> Effect {
        let open: Vec<ToolCall> = batch.open_calls().cloned().collect();
        let refuse = |calls: Vec<ToolCall>, why| Effect::Refuse { calls, why };
        if let Some(call) = batch.broken_call() {
            return refuse(vec![call.clone()], Refusal::CutOff);
        }
        let lost: Vec<ToolCall> = batch.lost_calls().cloned().collect();
        if !lost.is_empty() {
            let is_elsewhere = |call: &ToolCall| batch.is_elsewhere(&call.id);
            let (elsewhere, here): (Vec<_>, Vec<_>) = lost.into_iter().partition(is_elsewhere);
            return if elsewhere.is_empty() {
                refuse(here, Refusal::Interrupted)
            } else {
                refuse(elsewhere, Refusal::Elsewhere)
            };
        }
        let abandoned: Vec<ToolCall> = batch.abandoned_calls().cloned().collect();
        if !abandoned.is_empty() {
            let is_elsewhere = |call: &ToolCall| batch.is_elsewhere(&call.id);
            let (begun, not_begun): (Vec<_>, Vec<_>) =
                abandoned.into_iter().partition(is_elsewhere);
            return if begun.is_empty() {
                refuse(not_begun, Refusal::Redirected)
            } else {
                refuse(begun, Refusal::Elsewhere)
            };
        }
        if let Some(cause) = self.cancelled {
            let all = batch.open_calls().chain(batch.open_completions());
            let others: Vec<ToolCall> =
                all.filter(|call| !batch.is_parked(&call.id)).cloned().collect();
            return if others.is_empty() {
                self.finish(self.early(cause), now)
            } else {
                refuse(others, Refusal::Cancelled)
            };
        }
        let given_up: Vec<ToolCall> = batch.given_up().cloned().collect();
        if !given_up.is_empty() {
            return refuse(given_up, Refusal::GivenUp);
        }
        if !open.is_empty() {
            return match &self.exceeded {
                _ if batch.only_completion => refuse(open, Refusal::OnlyCompletion),
                Some(exceeded) => refuse(open, Refusal::Limit(exceeded.limit)),
                None => {
                    let ready: Vec<ToolCall> =
                        open.into_iter().filter(|call| !batch.is_parked(&call.id)).collect();
                    match ready.is_empty() {
                        true if self.children.work_on() => Effect::AwaitAgents,
                        true => self.park(self.questions.len()),
                        false if self.is_late(now) => Effect::Exceed(Limit::Time),
                        false => self.call_tools(ready),
                    }
                }
            };
        }
        let mut completions = batch.open_completions().cloned();
        match completions.next() {
            None => Effect::Rest,
            Some(call) if self.answer.is_some() => refuse(vec![call], Refusal::AlreadyComplete),
            Some(call) => match batch.failed_tool() {
                Some(tool) if !batch.only_completion => {
                    refuse(vec![call], Refusal::CallFailed(tool.to_owned()))
                }
                _ => Effect::Complete(call),
            },
        }
    }

    /// There is nothing to do until somebody answers.
    fn park(&self, calls: usize) -> Effect {
        let message = match calls {
            0 | 1 => "a call waits for an approval".to_owned(),
            calls => format!("{calls} calls wait for an approval"),
        };
        let outcome = self.early(Cause::AwaitsApproval).because(message);
        Effect::Finish { outcome, answer: None }
    }

    fn call_tools(&self, mut open: Vec<ToolCall>) -> Effect {
        let Some(limit) = self.settings.budget.tool_calls else { return Effect::CallTools(open) };
        let room = limit.saturating_sub(self.tool_calls_used()) as usize;
        if room == 0 {
            return Effect::Refuse { calls: open, why: Refusal::Limit(Limit::ToolCalls) };
        }
        open.truncate(room);
        Effect::CallTools(open)
    }

    /// Tells whether the model is offered `complete_task`.
    pub const fn completes_by_call(&self) -> bool {
        matches!(self.settings.ending, Ending::CompleteTask | Ending::StructuredOrCall)
    }

    /// Tells whether there is nothing left to do but to answer: looking back said so, or there is only
    /// one turn, whose calls nobody would ever see the answers of.
    pub(super) fn only_answers(&self) -> bool {
        self.due.contains(&Due::WrapUp) || self.settings.budget.turns <= 1
    }
}

const fn enough(left: u64, limit: Limit) -> Result<u64, Limit> {
    if left < MIN_OUTPUT { Err(limit) } else { Ok(left) }
}
