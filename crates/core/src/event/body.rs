//! What happened: every kind of event, with what there is to say about it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::parts::{FileSeen, PlanStep, Progress, Reflection, Rescue, Wanted};
use crate::effect::Effects;
use crate::error::ToolError;
use crate::hook::Moment;
use crate::id::{RunId, TaskId};
use crate::message::{Message, Part, StopReason};
use crate::outcome::{Cause, Outcome};
use crate::policy::RuleSpec;
use crate::result::Display;
use crate::run::{Limit, Purpose, RunSettings};
use crate::spec::{Declaration, Kind, Repeat};
use crate::time::{Millis, Timestamp};
use crate::usage::Usage;
use crate::workspace::{WorkspacePlace, WorkspaceReport};

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum EventBody {
    /// A run begins; what does not change is said once, here.
    RunStarted {
        /// The task it works for.
        task: TaskId,
        /// The model that works on it.
        #[serde(default)]
        model: String,
        /// What it was asked to do.
        prompt: String,
        /// What came with the prompt: images, documents.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Part>,
        /// A conversation it begins with, before the prompt.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        history: Vec<Message>,
        /// Its standing instructions.
        #[serde(default = "nothing")]
        system: Arc<str>,
        /// The tools it may call.
        #[serde(default = "no_tools")]
        tools: Arc<[Declaration]>,
        /// What it may use and how it ends.
        #[serde(default)]
        settings: RunSettings,
        /// What whoever started it needs to start it again. The run does not look at it.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        origin: Value,
    },
    /// The run goes on: in another process after the first one was lost, or after it had ended.
    RunResumed {
        /// The model that works on it from now on, if it is another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// What it may use and how it ends from now on, if that is something else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settings: Option<RunSettings>,
        /// What the answer that was lost on its way is taken to have used.
        #[serde(default)]
        lost: Usage,
        /// Whether there is something else to do now: agents that were stopped together with the run are not
        /// taken up then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        anything_else: bool,
        /// Whether the user continues a copy of a run in another way: calls, agents and requests that were open
        /// where it was cut are abandoned, and the message comes first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        redirected: bool,
        /// Agents that found no model, as the run did then, and go on where they were: their calls are made again.
        /// Those in the background just go on, and what was said of their ends is taken back.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        again: Vec<RunId>,
        /// What whoever resumes it the next time needs to know, if that is something else now.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        origin: Value,
    },
    /// The run began as a copy of the first events of another.
    RunForked {
        /// The other.
        from: RunId,
        /// The last event they share.
        at: u64,
    },
    /// The user said something more; it enters at the next turn.
    UserMessage {
        /// What.
        message: Message,
    },
    /// Somebody wants the run to stop.
    RunCancelled {
        /// Why: `interrupted` or `terminated`.
        cause: Cause,
    },
    /// A run ended.
    RunEnded {
        /// How.
        outcome: Outcome,
        /// Its answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Value>,
        /// What it and its children used.
        usage: Usage,
    },
    /// A turn begins.
    TurnStarted {
        /// Its number, from 1.
        turn: u32,
    },
    /// A turn ended.
    TurnEnded {
        /// Its number.
        turn: u32,
    },
    /// A model is asked.
    ModelRequest {
        /// Which.
        model: String,
        /// What for.
        purpose: Purpose,
        /// What is said to it first, at the end of the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<String>,
        /// How many tokens it is expected to take in.
        #[serde(default)]
        estimate: u64,
        /// How many tokens are set aside for the question and its answer, where a limit holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<u64>,
    },
    /// A piece of the answer.
    ModelDelta {
        /// The text.
        text: String,
    },
    /// A piece of the model's thinking.
    ModelThought {
        /// The text.
        text: String,
    },
    /// The model has begun to write a call of this tool.
    ModelToolCall {
        /// Which.
        tool_name: String,
    },
    /// The model answered.
    ModelResponse {
        /// What it was asked for.
        purpose: Purpose,
        /// The whole message.
        message: Message,
        /// What the answer used.
        usage: Usage,
        /// Why it ended.
        stop: StopReason,
        /// How many calls it held beyond those that are taken of one answer. They are not in the message.
        #[serde(default, skip_serializing_if = "is_zero")]
        dropped_calls: u32,
    },
    /// The model did not answer.
    ModelFailed {
        /// What it was asked for.
        purpose: Purpose,
        /// What that means for the run.
        cause: Cause,
        /// What happened, in one word.
        error: String,
        /// What happened, with the provider's own words.
        message: String,
        /// The HTTP status it was refused with, where there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// What to do about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// What it had said until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partial: Option<String>,
        /// What the unfinished answer is taken to have used.
        #[serde(default)]
        usage: Usage,
    },
    /// The model is asked again.
    ModelRetry {
        /// Which attempt comes.
        attempt: u32,
        /// After how long.
        delay_ms: Millis,
        /// Why.
        reason: String,
        /// What the attempt that broke is taken to have used.
        #[serde(default)]
        usage: Usage,
    },
    /// What the run has used so far, its children included.
    Usage(Usage),
    /// A tool was asked for.
    ToolCallRequested {
        /// Which.
        tool_name: String,
        /// With what.
        params: Arc<Value>,
    },
    /// A call passed all checks and begins.
    ToolCallStarted {
        /// Which tool.
        tool_name: String,
        /// What it will do, in words.
        description: String,
        /// What it touches.
        effects: Effects,
        /// Whether it may be made again if its end is never known.
        #[serde(default = "unsafe_to_repeat")]
        repeat: Repeat,
    },
    /// A call tells what it does.
    ToolCallProgress {
        /// Which tool.
        tool_name: String,
        /// The news.
        #[serde(flatten)]
        update: Progress,
    },
    /// A call worked.
    ToolCallCompleted {
        /// Which tool.
        tool_name: String,
        /// Its value.
        result: Arc<Value>,
        /// What the model sees of it.
        #[serde(default)]
        content: Vec<Part>,
        /// What a person sees of it, where that is something else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display: Option<Display>,
        /// How long it took.
        duration_ms: Millis,
        /// The files that the call read, wrote or was refused over, as they are now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileSeen>,
    },
    /// A call did not work.
    ToolCallFailed {
        /// Which tool.
        tool_name: String,
        /// Why.
        error: ToolError,
        /// What the model sees of it.
        #[serde(default)]
        content: Vec<Part>,
        /// How long it took.
        duration_ms: Millis,
        /// The files that the call read, wrote or was refused over, as they are now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileSeen>,
    },
    /// A call was not allowed; it never began.
    ToolCallDenied {
        /// Which tool.
        tool_name: String,
        /// Why.
        error: ToolError,
        /// What the model sees of it.
        #[serde(default)]
        content: Vec<Part>,
        /// How long it took to say so.
        duration_ms: Millis,
    },
    /// Permission was decided.
    PolicyDecision {
        /// For which tool.
        tool_name: String,
        /// `allow`, `ask` or `deny`.
        decision: String,
        /// Which rule said so.
        rule: String,
    },
    /// Somebody is asked.
    ApprovalAsked {
        /// About which tool.
        tool_name: String,
        /// What kind of act it is.
        kind: Kind,
        /// What it would do, in words.
        description: String,
        /// Its arguments.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        arguments: Arc<Value>,
        /// What it would change, where that can be shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<Display>,
        /// Why it is asked.
        reason: String,
        /// The rules that would allow it from now on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rules: Vec<RuleSpec>,
        /// When nobody will be waited for any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// Stands for all that was shown: an answer holds for just that.
        #[serde(default)]
        fingerprint: String,
    },
    /// Somebody answered.
    ApprovalAnswered {
        /// About which tool.
        tool_name: String,
        /// Whether it may run.
        approved: bool,
        /// What else was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Who answered, if anybody did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The arguments it runs with, where they were changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Arc<Value>>,
        /// What is allowed from now on in this run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rules: Vec<RuleSpec>,
    },
    /// A call that runs has to know something, and a person is asked for it. Its time stands still.
    InquiryAsked {
        /// The tool that runs.
        tool_name: String,
        /// Who asks: the tool, or what is behind it.
        who: String,
        /// What is asked, in the words of whoever asks.
        message: String,
        /// What is wanted.
        wanted: Wanted,
        /// What was wrong with the last answer, if this is asked again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
        /// Why a person is asked.
        reason: String,
        /// When nobody will be waited for any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// Stands for all that was shown: an answer holds for just that.
        #[serde(default)]
        fingerprint: String,
    },
    /// The call goes on: with what the person said, or without.
    InquiryAnswered {
        /// The tool that runs.
        tool_name: String,
        /// Who asked.
        who: String,
        /// Whether it was told what it wanted to know.
        accepted: bool,
        /// What it was told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        values: Option<Arc<Value>>,
        /// Why not, or what else was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Who answered, if anybody did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A call has no end yet: nobody answered the question about it, its tool was not here to be called after
    /// somebody was asked, or the agent it called was stopped together with the run. It is made again when the
    /// run is taken up.
    ToolCallDeferred {
        /// The tool.
        tool_name: String,
        /// What it waits for.
        reason: String,
    },
    /// A hook refused something, changed arguments, or failed.
    HookActed {
        /// Which hook.
        hook: String,
        /// When it was called.
        moment: Moment,
        /// `denied`, `asked`, `changed`, `failed`, or `ignored` where it had nothing to decide.
        action: String,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The arguments as it left them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Arc<Value>>,
    },
    /// The run got a place of its own to work in.
    WorkspacePrepared {
        /// Which.
        #[serde(flatten)]
        place: WorkspacePlace,
        /// What there is to know about it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// What the run changed in its own place, as it was when the run ended.
    WorkspaceChanged(WorkspaceReport),
    /// A subagent begins, or goes on with something more to do.
    AgentSpawned {
        /// Its run.
        child: RunId,
        /// Its name.
        name: String,
        /// What it was given: its inputs, or what more it is to do as `prompt`.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        inputs: Map<String, Value>,
        /// Whether its caller goes on meanwhile.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        background: bool,
        /// Whether it had ended before, and goes on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        continued: bool,
    },
    /// A subagent has nothing but a person to wait for, or not any more.
    AgentWaits {
        /// Its run.
        child: RunId,
        /// Whether it waits.
        waits: bool,
    },
    /// A subagent ended.
    AgentEnded {
        /// Its run.
        child: RunId,
        /// How.
        outcome: Outcome,
        /// What it used since it began or went on, its own children included.
        usage: Usage,
        /// What its caller is told about it, where no answer to a call does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// An answer that has to have a shape was checked against it.
    AnswerChecked {
        /// The answer.
        value: Value,
        /// What is wrong with it; nothing, if it is accepted.
        #[serde(default)]
        problems: Vec<String>,
    },
    /// The conversation was made shorter, or could not be.
    Compaction {
        /// Tokens before, as estimated.
        before: u64,
        /// Tokens after, as estimated.
        after: u64,
        /// All messages before this one, but for the task, are replaced.
        kept_from: usize,
        /// What takes their place; nothing, if the compaction was refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// The agent looked back.
    Reflection(Reflection),
    /// The agent made a plan.
    Plan {
        /// Its steps.
        steps: Vec<PlanStep>,
    },
    /// The model is told something by the runtime.
    Notice {
        /// What.
        message: String,
    },
    /// The same thing happened again and again, and the model is told.
    LoopDetected {
        /// The tool that was called.
        tool_name: String,
        /// How often.
        times: u32,
        /// What is done about it.
        #[serde(default)]
        rescue: Rescue,
        /// What the model is told.
        message: String,
    },
    /// A budget is nearly used up, and the model is told.
    BudgetWarning {
        /// Which.
        budget: Limit,
        /// How much of it is used, from 0 to 1.
        used: f64,
        /// What the model is told.
        #[serde(default)]
        message: String,
    },
    /// What is left of a budget is set aside for agents that work just now: the run waits for what they do not need.
    BudgetAwaited {
        /// How many tokens it would set aside for itself.
        tokens: u64,
    },
    /// A budget is used up, or what is left of it is too little to go on.
    BudgetExceeded {
        /// Which.
        budget: Limit,
        /// Whose, where the ledger of the tree said so: that of the run, or of one further up. Nothing, where the run
        /// saw it by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<RunId>,
        /// What of that is used and kept, and what one request takes, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// An MCP server changed its state.
    McpServerState {
        /// Which.
        server: String,
        /// `configured`, `starting`, `ready`, `failed` or `stopped`.
        state: String,
        /// Why, where there is a reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Something to know that stops nothing.
    Warning {
        /// What.
        message: String,
    },
    /// Something went wrong outside any call.
    Error {
        /// What.
        message: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks in this way")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn nothing() -> Arc<str> {
    Arc::from("")
}

/// What nobody knows is taken to be the worst.
const fn unsafe_to_repeat() -> Repeat {
    Repeat::Unsafe
}

fn no_tools() -> Arc<[Declaration]> {
    Arc::from([])
}

impl EventBody {
    /// Tells whether the event is kept, or only streamed.
    pub const fn is_durable(&self) -> bool {
        !matches!(
            self,
            Self::ModelDelta { .. }
                | Self::ModelThought { .. }
                | Self::ModelToolCall { .. }
                | Self::ToolCallProgress { .. }
                | Self::BudgetAwaited { .. }
        )
    }

    /// Tells whether it holds what a tool said: what came of a call that was made.
    pub const fn is_said_by_a_tool(&self) -> bool {
        matches!(self, Self::ToolCallCompleted { .. } | Self::ToolCallFailed { .. })
    }

    /// Tells whether the event ends a tool call.
    pub const fn ends_call(&self) -> bool {
        matches!(
            self,
            Self::ToolCallCompleted { .. }
                | Self::ToolCallFailed { .. }
                | Self::ToolCallDenied { .. }
        )
    }
}
