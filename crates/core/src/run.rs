//! The run machine: an agent's loop without any I/O.
//!
//! A [`Run`] is what happened so far. Two functions are all there is to it:
//!
//! - [`Run::apply`] folds one event into it. The stream of events is the whole truth: folding the same
//!   events gives the same run, in any process, at any time.
//! - [`Run::decide`] says what to do next. It changes nothing.
//!
//! Whoever drives a run asks for the next [`Effect`], carries it out, and records what came of it as events;
//! each recorded event is applied, and the question is asked again. A run that was interrupted is
//! rebuilt by folding its events, and goes on with the same question: the past is never decided again.
//!
//! ```text
//!            ┌──────────────── apply(event) ◄───────────────┐
//!            ▼                                              │
//!          Run ── decide(now) ──► Effect ──► driver ──► events
//! ```
//!
//! A turn goes: limits, compaction if needed, the model, its calls, their answers. What holds:
//!
//! - Every call is answered exactly once, and the answers reach the model in the order of the calls,
//!   before anything else is said.
//! - Every use of the model passes one check of all limits.
//! - The last turn and the last minute are kept for one answer that can only finish. What is answered
//!   there is marked as recovered, and the cause stays.
//! - After the end there are no effects, unless the run is resumed: then it goes on where it was.
//! - A run does not end before the agents that it left working: it waits for them, or stops them.
//! - A run that makes no progress is told, then starts over from a summary, then ends, or a person is asked.
//! - A call that waits for a person's answer is not answered by anybody else: with nothing left to do beside
//!   it, the run ends as parked, and the same call is asked about when it is resumed.

mod apply;
mod batch;
mod children;
mod conversation;
mod decide;
mod repetition;
mod settings;
mod stopwatch;
mod task;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::batch::Batch;
use self::children::Children;
use self::conversation::Conversation;
use self::repetition::Repetition;
use self::stopwatch::Stopwatch;
use crate::id::{CallId, RunId};
use crate::ledger::dearest;
use crate::message::{Message, Part, Role, ToolCall};
use crate::outcome::{Cause, Outcome, Status};
use crate::policy::RuleSpec;
use crate::spec::Declaration;
use crate::time::{Millis, Timestamp};
use crate::usage::{Money, Usage};

pub use self::batch::Approval;
pub use self::children::Child;
pub use self::conversation::estimate;
pub use self::decide::{Effect, Refusal, Told};
pub use self::settings::{
    Budget, Ending, Limit, OnStuck, OutputSpec, Purpose, ReflectionMode, RunSettings, Strategy,
};
pub use self::task::{ActionResult, Ledger, TaskContext};

/// The tool by which a run says that its task is done.
pub const COMPLETE_TASK: &str = "complete_task";

/// How long the answer to a call is at least, in tokens, where room is kept for it.
const ANSWER_TOKENS: u64 = 128;

/// What happened in a run so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    id: RunId,
    phase: Phase,
    settings: RunSettings,
    model: String,
    system: Arc<str>,
    tools: Arc<[Declaration]>,
    conversation: Conversation,
    /// What the user said since the last turn began.
    inbox: Vec<Message>,
    /// What the model has to be told when the next turn begins.
    notices: Vec<String>,
    turn: Turn,
    clock: Stopwatch,
    spent: Usage,
    /// The calls that somebody was asked about and has not answered, and since when.
    questions: BTreeMap<CallId, Timestamp>,
    /// What somebody allowed for the rest of the run.
    granted: Vec<RuleSpec>,
    /// How many calls of tools began.
    tool_calls: u32,
    /// What had been used up when the run was last taken up again after its end. Turns and calls are
    /// counted from there; tokens and money are counted over all of it.
    before: Before,
    /// The limits that were warned of.
    warned: BTreeSet<Limit>,
    /// The limit that was reached first.
    exceeded: Option<Exceeded>,
    /// The agents it called.
    children: Children,
    repetition: Repetition,
    /// How often it was helped because it made no progress.
    rescues: u32,
    /// Whether it went on from a summary because of that.
    restarted: bool,
    task: Option<TaskContext>,
    /// What is to be done before the next turn.
    due: BTreeSet<Due>,
    /// Why the model was asked to finish with what there is.
    grace: Option<Cause>,
    answer: Option<Value>,
    /// The last thing the model said in words.
    last_words: Option<String>,
    /// The pieces of an answer that was cut off.
    pieces: String,
    failure: Option<Failure>,
    cancelled: Option<Cause>,
    /// How long the conversation was when it could not be made shorter.
    compaction_refused_at: Option<u64>,
    /// The last turn after which the conversation was summed up.
    compacted_in: Option<u32>,
    denied: Denied,
    /// The calls that were refused, of those that were answered last.
    #[serde(default)]
    refused_last: BTreeSet<CallId>,
    /// How many calls of which tools were refused.
    refused: BTreeMap<String, u32>,
    /// Whether it was reminded that a text is no result.
    reminded: bool,
    /// How many calls of its last answer were not taken, and the model has yet to be told.
    dropped_calls: u32,
    /// Whether the answer that was lost has been paid for.
    loss_is_charged: bool,
    /// What was set aside for the request that the model got last.
    request: Reserved,
    /// The files that its calls read or wrote, with the hash of the content they last saw.
    #[serde(default)]
    files: BTreeMap<String, String>,
    outcome: Option<Outcome>,
    #[serde(default)]
    fork: ForkState,
}

/// How far a copy of another run is from its original.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum ForkState {
    /// It is no copy, or one that goes its own way.
    #[default]
    None,
    /// Nobody has resumed it with a message yet.
    New,
    /// The user continued it in another way, and no turn began since: a message enters the conversation at once
    /// instead of at the next turn.
    Redirected,
}

/// What the run is in the middle of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Phase {
    /// It has not begun.
    New,
    /// Nothing is under way.
    Ready,
    /// The model was asked.
    Asking(Purpose),
    /// The model answered something that is not part of the conversation, and it has to be made use of.
    Concluding(Purpose, String),
    /// The model asked for tools.
    Calling(Batch),
    /// The model gave an answer that has to have a shape.
    Checking(String),
    /// It is over.
    Ended,
}

/// The turn of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Turn {
    /// How many began.
    number: u32,
    open: bool,
    /// Whether the model has answered in it, or failed to.
    answered: bool,
}

/// What was used before the run was taken up again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Before {
    turns: u32,
    tool_calls: u32,
}

/// The tokens that were set aside for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Reserved {
    /// For the question, as estimated.
    input: u64,
    /// For the question and the longest answer, where a limit holds.
    total: Option<u64>,
}

/// A limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Exceeded {
    limit: Limit,
    /// Whose limit it is, if it is not the run's own.
    of: Option<RunId>,
    /// What is left of it, and what would be needed, in words.
    why: Option<String>,
    /// Whether nothing was left for a last answer either.
    is_final: bool,
}

/// Whether what was wanted last was not allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Denied {
    /// Of the calls of the last answer with calls, some were refused and none did anything.
    last: bool,
    /// What became of agents in the background that the run has yet to hear of.
    aside: Aside,
    /// What became of those that it heard of since that answer.
    heard: Aside,
}

/// How agents in the background ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Aside {
    /// One was not allowed what it wanted.
    refused: bool,
    /// One did what it was to do.
    done: bool,
}

impl Denied {
    /// The run hears of the agents that ended. What counts for calls that it waits for counts for them: some were
    /// refused, and none did anything.
    fn hear(&mut self) {
        let Aside { refused, done } = std::mem::take(&mut self.aside);
        self.heard.refused |= refused;
        self.heard.done |= done;
        if self.heard.refused {
            self.last = !self.heard.done;
        }
    }
}

/// What comes before the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Due {
    /// Tell the model that its answer was cut off.
    SayCutOff,
    /// The model said something that nobody reads: remind it once of how it ends.
    Remind,
    /// The model said nothing that ends the run: ask it once to finish.
    Finish,
    /// Look back.
    Reflect,
    /// Make a plan.
    Plan,
    /// The conversation was too long for the model.
    Shorten,
    /// It made no progress: go on from a summary.
    StartOver,
    /// Looking back said that the task is done: let the model say so, without tools.
    WrapUp,
}

/// What ended the run early.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Failure {
    cause: Cause,
    message: String,
}

impl Run {
    /// Makes a run that has not begun.
    pub fn new(id: RunId) -> Self {
        Self {
            id,
            phase: Phase::New,
            settings: RunSettings::default(),
            model: String::new(),
            system: Arc::from(""),
            tools: Arc::from([]),
            conversation: Conversation::default(),
            inbox: Vec::new(),
            notices: Vec::new(),
            turn: Turn::default(),
            clock: Stopwatch::default(),
            spent: Usage::default(),
            questions: BTreeMap::new(),
            granted: Vec::new(),
            tool_calls: 0,
            before: Before::default(),
            warned: BTreeSet::new(),
            exceeded: None,
            children: Children::default(),
            repetition: Repetition::default(),
            rescues: 0,
            restarted: false,
            task: None,
            due: BTreeSet::new(),
            grace: None,
            answer: None,
            last_words: None,
            pieces: String::new(),
            failure: None,
            cancelled: None,
            compaction_refused_at: None,
            compacted_in: None,
            denied: Denied::default(),
            refused_last: BTreeSet::new(),
            refused: BTreeMap::new(),
            reminded: false,
            dropped_calls: 0,
            loss_is_charged: false,
            request: Reserved::default(),
            files: BTreeMap::new(),
            outcome: None,
            fork: ForkState::None,
        }
    }

    /// Rebuilds a run from its events. Those of other runs are passed over.
    pub fn replay<'a>(id: RunId, events: impl IntoIterator<Item = &'a crate::Event>) -> Self {
        let mut run = Self::new(id);
        events.into_iter().for_each(|event| run.apply(event));
        run
    }

    /// Returns its id.
    pub const fn id(&self) -> &RunId {
        &self.id
    }

    /// Tells whether somebody wants it to stop.
    pub const fn is_cancelled(&self) -> bool {
        self.cancelled.is_some()
    }

    /// Returns why a last answer is asked for, or would be now.
    pub fn grace_cause(&self) -> Cause {
        let reached = self.exceeded.as_ref().map(|exceeded| exceeded.limit.cause());
        self.grace.or(reached).unwrap_or(Cause::NoCompletion)
    }

    /// Tells whether it is a copy of another run that nobody has resumed with a message yet.
    pub const fn is_new_fork(&self) -> bool {
        matches!(self.fork, ForkState::New)
    }

    /// Returns its standing instructions.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Returns the tools the model is told about.
    pub fn tools(&self) -> &[Declaration] {
        &self.tools
    }

    /// Returns the conversation.
    pub fn messages(&self) -> &[Message] {
        &self.conversation.messages
    }

    /// Returns what does not change.
    pub const fn settings(&self) -> &RunSettings {
        &self.settings
    }

    /// Returns what it has used, its children included.
    pub const fn spent(&self) -> &Usage {
        &self.spent
    }

    /// Returns the model that works on it.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Tells whether the model was asked for something that nobody has paid for.
    pub const fn owes_an_answer(&self) -> bool {
        self.asking().is_some() && !self.loss_is_charged
    }

    /// Returns what a request is charged whose answer was lost: all that was set aside for it, since the provider may
    /// have generated the longest answer. Without a limit nothing was set aside, and the question is charged.
    pub fn lost_answer(&self) -> Usage {
        if !self.owes_an_answer() {
            return Usage::default();
        }
        let Reserved { input, total } = self.request;
        let input = if input == 0 { self.conversation.tokens } else { input };
        let output = match total {
            Some(total) => total.saturating_sub(input),
            // A journal that does not say: the longest answer there was room for.
            None => self.allowance().ok().flatten().unwrap_or_default(),
        };
        let mut lost = Usage {
            input_tokens: input,
            output_tokens: output,
            estimated: true,
            ..Usage::default()
        };
        let dearest_of = |price| dearest(price, Usage { cache_write_tokens: input, ..lost });
        lost.cost = self.settings.model.price.map(dearest_of);
        lost
    }

    /// Tells whether a run that is resumed after its end begins anew: with all its turns, its time and its calls. One
    /// that a signal stopped goes on where it was, as one whose process was killed does, unless the user wants
    /// something else now.
    pub fn begins_anew(&self, anything_else: bool) -> bool {
        match self.outcome.as_ref().map(|outcome| outcome.status) {
            None | Some(Status::Parked) => false,
            Some(Status::Cancelled) => anything_else,
            Some(_) => true,
        }
    }

    /// Tells whether the user consented to a call that has no end yet.
    pub fn is_approved(&self, call: &CallId) -> bool {
        matches!(&self.phase, Phase::Calling(batch) if batch.is_approved(call))
    }

    /// Returns the user's consent to a call as it was shown, if that was recorded and the call has no end yet.
    pub fn approval(&self, call: &CallId, fingerprint: &str) -> Option<&Approval> {
        match &self.phase {
            Phase::Calling(batch) => batch.approval(call, fingerprint),
            _ => None,
        }
    }

    /// Returns the arguments that a person gave an open call and approved.
    pub fn changed_arguments(&self, call: &CallId) -> Option<&Value> {
        match &self.phase {
            Phase::Calling(batch) => batch.changed_arguments(call),
            _ => None,
        }
    }

    /// Returns what the model is being asked for, if it has not answered yet.
    pub const fn asking(&self) -> Option<Purpose> {
        match &self.phase {
            Phase::Asking(purpose) => Some(*purpose),
            _ => None,
        }
    }

    /// Tells whether the last word is the model's and nothing follows from it, so that the run can only go
    /// on if somebody says something. What was said of the ends of agents that go on `again` is taken back then.
    pub fn waits_for_a_word(&self, again: &[RunId]) -> bool {
        let told = self.children.told(again).map(|told| Message::text(Role::User, told));
        let taken_back: Vec<Message> = told.collect();
        let mut said = self.messages().iter().rev();
        let last = said.find(|message| !taken_back.contains(message)).map(|message| message.role);
        let at_rest = match self.phase {
            Phase::Ended => true,
            Phase::Ready => {
                !self.turn.open
                    && self.answer.is_none()
                    && self.due.is_empty()
                    && self.notices.is_empty()
            }
            _ => false,
        };
        let is_told_nothing = self.inbox.iter().all(|message| taken_back.contains(message));
        at_rest && last == Some(Role::Assistant) && is_told_nothing
    }

    /// Returns the calls that wait for an answer of a person, and since when.
    pub const fn questions(&self) -> &BTreeMap<CallId, Timestamp> {
        &self.questions
    }

    /// Returns what somebody allowed for the rest of the run.
    pub fn granted(&self) -> &[RuleSpec] {
        &self.granted
    }

    /// Returns the files that its calls read or wrote: the path, and the hash of the content last seen.
    pub const fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Returns the agents it called.
    pub const fn children(&self) -> &BTreeMap<RunId, Child> {
        self.children.all()
    }

    /// Returns the agents that are not done, and are taken up together with it if it has nothing else to do.
    pub fn unfinished(&self) -> impl Iterator<Item = (&RunId, &Child)> {
        let open: Vec<CallId> = match &self.phase {
            Phase::Calling(batch) => batch.calls_to_make().map(|call| call.id.clone()).collect(),
            _ => Vec::new(),
        };
        self.children.unfinished(move |call| open.contains(call))
    }

    /// Returns how many calls of tools are under way, and made again by whoever takes it up.
    pub fn calls_to_make(&self) -> usize {
        match &self.phase {
            Phase::Calling(batch) => batch.calls_to_make().count(),
            _ => 0,
        }
    }

    /// Returns the calls of its last answer that have no end.
    pub fn calls_without_end(&self) -> Vec<ToolCall> {
        match &self.phase {
            Phase::Calling(batch) => {
                batch.open_calls().chain(batch.open_completions()).cloned().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Tells whether a call began, nobody will ever know how it ended, and it is not made again.
    pub fn is_lost(&self, call: &CallId) -> bool {
        match &self.phase {
            Phase::Calling(batch) => batch.lost_calls().any(|lost| lost.id == *call),
            _ => false,
        }
    }

    /// Returns the agents that found no model, in a run that ended since it found none either, and those in the
    /// background that were stopped for that reason. They can go on as long as the model has not heard what came of
    /// them.
    pub fn without_model(&self) -> impl Iterator<Item = (&RunId, &Child)> {
        let no_model = |outcome: &Outcome| outcome.cause == Cause::ModelUnavailable;
        let ended = self.outcome.as_ref().is_some_and(no_model);
        let failed = self.conversation.failed_unheard();
        let waited_for = failed.filter_map(move |call| self.children.without_model(call));
        let aside = self.children.aside_without_model();
        let unheard = aside.filter(move |(_, told)| self.is_unheard(told)).map(|(child, _)| child);
        waited_for.chain(unheard).filter(move |_| ended)
    }

    /// Tells whether the model has yet to hear something that it was told.
    fn is_unheard(&self, told: &str) -> bool {
        let message = Message::text(Role::User, told);
        self.inbox.contains(&message) || self.conversation.said_last().contains(&message)
    }

    /// Tells whether there is nothing but a person to wait for.
    pub fn only_waits(&self) -> bool {
        self.clock.only_waits()
    }

    /// Returns how many turns began.
    pub const fn turns(&self) -> u32 {
        self.turn.number
    }

    /// Returns how many calls of tools began.
    pub const fn tool_calls(&self) -> u32 {
        self.tool_calls
    }

    /// Returns its task and what came of it, once it has begun.
    pub const fn task(&self) -> Option<&TaskContext> {
        self.task.as_ref()
    }

    /// Returns about how many tokens its next request takes in.
    pub const fn context_tokens(&self) -> u64 {
        self.conversation.tokens
    }

    /// Returns its answer, if it gave one.
    pub const fn answer(&self) -> Option<&Value> {
        self.answer.as_ref()
    }

    /// Returns how it ended, if it did.
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Returns how long it has worked, without waiting for people.
    pub fn elapsed(&self, now: Timestamp) -> Duration {
        self.clock.elapsed(now)
    }

    /// Returns how long what is under way may still take; nothing while there is only a person to wait for.
    pub fn time_left(&self, now: Timestamp) -> Option<Duration> {
        let under_way = if self.grace.is_some() { Purpose::Grace } else { Purpose::Main };
        self.time_left_for(under_way, now)
    }

    /// Returns how long something that the model is to be asked for may take: part of the time is kept for a last
    /// answer.
    pub fn time_left_for(&self, purpose: Purpose, now: Timestamp) -> Option<Duration> {
        if self.clock.only_waits() {
            return None;
        }
        let budget = &self.settings.budget;
        let until = match purpose {
            Purpose::Grace => budget.time_ms.get(),
            _ => budget.working_time(),
        };
        Some(until.saturating_sub(self.elapsed(now)))
    }

    /// Returns how long it had worked when something last happened in it.
    pub fn worked(&self) -> Duration {
        self.clock.worked()
    }

    /// Returns how many calls of which tools were refused since it was last taken up after its end.
    pub const fn refused(&self) -> &BTreeMap<String, u32> {
        &self.refused
    }

    /// Returns what agents that it calls leave to it, of its tokens and of its money, so that it can make
    /// something of what they found.
    pub fn kept(&self) -> (u64, Money) {
        let RunSettings { budget, model, .. } = &self.settings;
        let calls = match &self.phase {
            Phase::Calling(batch) => batch.open_calls().count() as u64,
            _ => 0,
        };
        // What comes back makes the conversation longer; how much is not known.
        let now = self.conversation.tokens;
        let context = now.saturating_add(now / 2).saturating_add(calls * ANSWER_TOKENS);
        (budget.kept_tokens(context), budget.kept_cost(context, model.price))
    }

    /// Returns what an agent that it calls may use at most: what it has left itself, without what is kept for
    /// its own next answer.
    pub fn left(&self, now: Timestamp) -> Budget {
        let budget = &self.settings.budget;
        let (tokens, cost) = self.kept();
        let spent = self.spent.input_tokens.saturating_add(self.spent.output_tokens);
        let spent_cost = self.spent.cost.unwrap_or_default().amount();
        let time = self
            .time_left(now)
            .unwrap_or_else(|| budget.working_time().saturating_sub(self.elapsed(now)));
        Budget {
            turns: budget.turns.saturating_sub(self.turns_used()),
            time_ms: Millis::new(time),
            turn_time_ms: budget.turn_time_ms,
            tokens: budget.tokens.map(|limit| limit.saturating_sub(spent).saturating_sub(tokens)),
            cost: budget.cost.map(|limit| {
                let left = limit.amount().saturating_sub(spent_cost).saturating_sub(cost.amount());
                Money::new(left.max(Decimal::ZERO))
            }),
            tool_calls: budget.tool_calls.map(|limit| limit.saturating_sub(self.tool_calls_used())),
        }
    }

    /// Tells whether a conversation of so many tokens is short enough that it need not be compacted.
    pub fn is_short_enough(&self, tokens: u64) -> bool {
        self.settings.model.window.is_none_or(|window| tokens <= self.compacts_at(window))
    }

    /// Returns how long the conversation would be after a compaction, in tokens as estimated.
    pub fn after_compaction(&self, kept_from: usize, summary: &str) -> u64 {
        self.conversation.after_compaction(kept_from, summary)
    }

    /// Gives every call of an answer an id that no other call of the run has. One the provider gave is
    /// kept if it is new.
    pub fn name_calls(&self, answer: &mut Message) {
        if answer.calls().next().is_none() {
            return;
        }
        let mut taken: BTreeSet<CallId> =
            self.messages().iter().flat_map(Message::calls).map(|call| call.id.clone()).collect();
        for (index, part) in answer.parts.iter_mut().enumerate() {
            let Part::ToolCall(call) = part else { continue };
            let made_up = (0..).map(|more: u32| match more {
                0 => format!("call_{}_{index}", self.turn.number),
                more => format!("call_{}_{index}_{more}", self.turn.number),
            });
            let given = Some(call.id.to_string()).filter(|id| !id.is_empty());
            let ids = given.into_iter().chain(made_up).map(CallId::new);
            if let Some(id) = ids.into_iter().find(|id| taken.insert(id.clone())) {
                call.id = id;
            }
        }
    }
}
