//! The things that happen in a run.

use std::time::Duration;

use convoke_core::event::{PlanStep, Reflection};
use convoke_core::policy::RuleSpec;
use convoke_core::{
    CallId, Cause, Display, Effects, Kind, Message, Part, Purpose, StopReason, Timestamp,
    ToolError, Usage,
};
use serde_json::Value;

use super::{AgentIndex, End, Span};

/// Something that happened, or is happening.
#[derive(Clone, Debug, PartialEq)]
pub struct Item<'e> {
    /// Names it within the timeline: `e12`, after the number of the event that began it.
    pub id: String,
    /// When.
    pub span: Span,
    /// What.
    pub kind: ItemKind<'e>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ItemKind<'e> {
    /// Somebody asked for something.
    Asked {
        /// In words.
        text: String,
        /// What came with it.
        attachments: Vec<&'e Part>,
        /// How many messages of an earlier conversation came before it.
        history: usize,
    },
    /// A turn, with all that happened in it.
    Turn(Turn<'e>),
    /// A model was asked.
    Model(ModelCall<'e>),
    /// A tool was asked for.
    Call(Call<'e>),
    /// Another agent was started, and no call says so.
    Agent(AgentIndex),
    /// The conversation was made shorter, or could not be.
    Compaction {
        /// Tokens before.
        before: u64,
        /// Tokens after.
        after: u64,
        /// What took the place of what was left out.
        summary: Option<&'e str>,
    },
    /// The agent looked back.
    Reflection(&'e Reflection),
    /// The agent made a plan.
    Plan(&'e [PlanStep]),
    /// An answer was checked against the shape it has to have.
    AnswerChecked {
        /// The answer.
        value: &'e Value,
        /// What is wrong with it.
        problems: &'e [String],
    },
    /// Something worth a line.
    Note(Note),
    /// An event that is shown as it stands.
    Plain {
        /// What kind of event it is.
        kind: String,
        /// What it says.
        data: Value,
    },
    /// The run ended.
    Ended(End<'e>),
}

/// A turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn<'e> {
    /// Its number.
    pub number: u32,
    /// What happened in it.
    pub items: Vec<Item<'e>>,
    /// What its model calls used.
    pub usage: Usage,
    /// What the run had used by then, its children included, where the run said so.
    pub so_far: Option<Usage>,
}

/// A model that was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCall<'e> {
    /// Which.
    pub model: &'e str,
    /// What for.
    pub purpose: Purpose,
    /// What it was told first.
    pub notice: Option<&'e str>,
    /// How many tokens it was expected to take in.
    pub estimate: u64,
    /// The attempts that broke.
    pub retries: Vec<Retry<'e>>,
    /// What it thought, as far as that was shown.
    pub thoughts: String,
    /// What it said in words; what it had said until then, if it has not finished.
    pub words: String,
    /// The tools it has begun to write calls of, where that was streamed.
    pub begun: Vec<&'e str>,
    /// The whole message, once it is there.
    pub message: Option<&'e Message>,
    /// What it used, with the attempts that broke.
    pub usage: Usage,
    /// What came of it.
    pub state: ModelState<'e>,
}

/// What came of asking a model.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelState<'e> {
    /// Nothing yet.
    Open,
    /// It answered.
    Answered(StopReason),
    /// It did not answer.
    Failed(ModelFailure<'e>),
    /// The run went on without its answer: it was interrupted.
    Interrupted,
}

/// Why a model did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFailure<'e> {
    /// What that means for the run.
    pub cause: Cause,
    /// What happened, in one word.
    pub error: &'e str,
    /// What happened, with the provider's own words.
    pub message: &'e str,
    /// What to do about it.
    pub hint: Option<&'e str>,
}

/// An attempt that broke, and the one that followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry<'e> {
    /// When it broke, from the beginning of the run.
    pub at: Duration,
    /// Which attempt came next.
    pub attempt: u32,
    /// After how long.
    pub delay: Duration,
    /// Why.
    pub reason: &'e str,
}

impl<'e> ModelCall<'e> {
    /// A model that was just asked.
    pub(super) fn new(model: &'e str, purpose: Purpose) -> Self {
        Self {
            model,
            purpose,
            notice: None,
            estimate: 0,
            retries: Vec::new(),
            thoughts: String::new(),
            words: String::new(),
            begun: Vec::new(),
            message: None,
            usage: Usage::default(),
            state: ModelState::Open,
        }
    }
}

/// A tool that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<'e> {
    /// Names it within its run.
    pub id: Option<&'e CallId>,
    /// Which tool.
    pub tool: &'e str,
    /// With what.
    pub arguments: &'e Value,
    /// When it passed all checks and began, from the beginning of the run.
    pub began: Option<Duration>,
    /// What it does, in words, once it began.
    pub description: Option<&'e str>,
    /// What it touches, once it began.
    pub effects: Option<&'e Effects>,
    /// What the policy said, and which rule.
    pub decision: Option<(&'e str, &'e str)>,
    /// What somebody was asked about it.
    pub approval: Option<Approval<'e>>,
    /// What it told while it ran, where that is known.
    pub progress: String,
    /// How much of it was done, from 0 to 1, as it last said.
    pub fraction: Option<f64>,
    /// What came of it.
    pub state: CallState<'e>,
    /// What the model sees of it.
    pub content: &'e [Part],
    /// What a person sees of it.
    pub display: Option<&'e Display>,
    /// How long the tool itself took, as it says.
    pub took: Option<Duration>,
    /// The agents that it started.
    pub agents: Vec<AgentIndex>,
}

impl<'e> Call<'e> {
    /// A call that was just asked for.
    pub(super) fn new(id: Option<&'e CallId>, tool: &'e str, arguments: &'e Value) -> Self {
        Self {
            id,
            tool,
            arguments,
            began: None,
            description: None,
            effects: None,
            decision: None,
            approval: None,
            progress: String::new(),
            fraction: None,
            state: CallState::Requested,
            content: &[],
            display: None,
            took: None,
            agents: Vec::new(),
        }
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallState<'e> {
    /// It was asked for.
    Requested,
    /// Somebody has to allow it.
    Waiting,
    /// It runs.
    Running,
    /// It worked; this is its value.
    Completed(&'e Value),
    /// It did not work.
    Failed(&'e ToolError),
    /// It was not allowed.
    Denied(&'e ToolError),
    /// It waits for this, and is made again when the run is taken up.
    Deferred(&'e str),
    /// The run went on without its answer.
    Interrupted,
}

impl CallState<'_> {
    /// Tells whether nothing came of it yet.
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Requested | Self::Waiting | Self::Running)
    }
}

/// What somebody was asked about a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval<'e> {
    /// When.
    pub span: Span,
    /// What kind of act it is.
    pub kind: Kind,
    /// What it would do, in words.
    pub description: &'e str,
    /// Why it was asked.
    pub reason: &'e str,
    /// What it would change.
    pub preview: Option<&'e Display>,
    /// The rules that would allow it from now on.
    pub rules: &'e [RuleSpec],
    /// When nobody is waited for any more.
    pub until: Option<Timestamp>,
    /// Whether it may run, once that was answered.
    pub approved: Option<bool>,
    /// What else was said.
    pub words: Option<&'e str>,
    /// Who answered.
    pub by: Option<&'e str>,
    /// The arguments that it was allowed with, where they were changed.
    pub changed: Option<&'e Value>,
    /// What was allowed for the rest of the run.
    pub granted: &'e [RuleSpec],
}

/// Something worth a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// How much it matters.
    pub tone: Tone,
    /// What it is, in a few words.
    pub title: String,
    /// What it says.
    pub text: String,
}

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Good to know.
    Quiet,
    /// Something to look at.
    Warning,
    /// Something went wrong.
    Error,
}
