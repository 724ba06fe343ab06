//! What is recorded for an effect that needs neither a model nor a tool: it follows from the run alone.
//!
//! The driver records it; a replay compares it with what was recorded.

use std::sync::Arc;

use convoke_core::event::Rescue;
use convoke_core::run::{COMPLETE_TASK, Refusal, Told};
use convoke_core::{
    CallId, Effect, ErrorKind, EventBody, Millis, Part, Purpose, Run, ToolCall, ToolError,
};
use serde_json::Value;

use crate::completion::Completion;
use crate::look_back::{read_plan, read_reflection};
use crate::member::short_id;
use crate::{compact, prompts};

/// An event, and the call it concerns.
pub(crate) type Settled = (Option<CallId>, EventBody);

/// Returns the events of an effect; none, if somebody else has to do something first. Without a
/// `completion`, what would have to be held against it is not settled.
pub(crate) fn settled(effect: &Effect, run: &Run, completion: Option<&Completion>) -> Vec<Settled> {
    match effect {
        Effect::StartTurn(turn) => one(EventBody::TurnStarted { turn: *turn }),
        Effect::EndTurn(turn) => one(EventBody::TurnEnded { turn: *turn }),
        Effect::Exceed(budget) => {
            one(EventBody::BudgetExceeded { budget: *budget, of: None, why: None })
        }
        Effect::Tell(told) => one(tell(told, run)),
        Effect::Shorten { kept_from, summary } => one(shorten(run, *kept_from, summary)),
        Effect::Reflect(words) => one(EventBody::Reflection(read_reflection(words))),
        Effect::Plan(words) => one(EventBody::Plan { steps: read_plan(words) }),
        Effect::Refuse { calls, why } => {
            calls.iter().flat_map(|call| answer(call, Err(refusal(why, call, run)))).collect()
        }
        Effect::Complete(call) => completion.map_or_else(Vec::new, |completion| {
            let checked = completion.check_call(&call.arguments);
            answer(call, checked.map_err(ToolError::validation)).into()
        }),
        Effect::CheckAnswer(words) => {
            completion.map_or_else(Vec::new, |completion| one(check(completion, words)))
        }
        Effect::Finish { outcome, answer } => one(EventBody::RunEnded {
            outcome: outcome.clone(),
            answer: answer.clone(),
            usage: *run.spent(),
        }),
        Effect::CallModel { .. }
        | Effect::Compact { .. }
        | Effect::CallTools(_)
        | Effect::AskToGoOn { .. }
        | Effect::AwaitAgents
        | Effect::StopAgents
        | Effect::Rest => Vec::new(),
    }
}

/// Returns what is recorded before the model is asked.
pub(crate) fn request(run: &Run, purpose: Purpose) -> EventBody {
    let notice = (purpose == Purpose::Grace)
        .then(|| prompts::grace(run.grace_cause(), run.settings().ending));
    EventBody::ModelRequest {
        model: run.model().to_owned(),
        purpose,
        notice,
        estimate: run.context_tokens(),
        reserved: None,
    }
}

fn one(body: EventBody) -> Vec<Settled> {
    vec![(None, body)]
}

fn shorten(run: &Run, kept_from: usize, summary: &str) -> EventBody {
    let before = run.context_tokens();
    let (after, summary) = compact::replacement(run, kept_from, summary);
    EventBody::Compaction { before, after, kept_from, summary }
}

fn check(completion: &Completion, words: &str) -> EventBody {
    match completion.check_words(words) {
        Ok(value) => EventBody::AnswerChecked { value, problems: Vec::new() },
        Err((value, problems)) => {
            let listed: Vec<String> =
                problems.iter().map(|problem| format!("- {problem}")).collect();
            let schema = completion.spec().map(|spec| spec.schema.to_string()).unwrap_or_default();
            let problems = vec![prompts::wrong_answer(&listed.join("\n"), &schema)];
            EventBody::AnswerChecked { value, problems }
        }
    }
}

/// A call that no tool sees, and its answer.
fn answer(call: &ToolCall, answer: Result<Value, ToolError>) -> [Settled; 2] {
    let (tool_name, duration_ms) = (call.name.clone(), Millis::default());
    let params = Arc::new(call.arguments.clone());
    let requested = EventBody::ToolCallRequested { tool_name: tool_name.clone(), params };
    let answered = match answer {
        Ok(value) => EventBody::ToolCallCompleted {
            tool_name,
            result: Arc::new(value),
            content: vec![Part::text("The task is complete.")],
            display: None,
            duration_ms,
            files: Vec::new(),
        },
        Err(error) => {
            let content = vec![Part::text(format!("Error ({}): {}", error.kind, error.message))];
            if error.kind == ErrorKind::Permission {
                EventBody::ToolCallDenied { tool_name, error, content, duration_ms }
            } else {
                EventBody::ToolCallFailed {
                    tool_name,
                    error,
                    content,
                    duration_ms,
                    files: Vec::new(),
                }
            }
        }
    };
    [(Some(call.id.clone()), requested), (Some(call.id.clone()), answered)]
}

fn tell(told: &Told, run: &Run) -> EventBody {
    match told {
        Told::BudgetIsShort { limit, used } => {
            let (budget, used) = (*limit, *used);
            EventBody::BudgetWarning { budget, used, message: prompts::budget(budget, used) }
        }
        Told::YouRepeatYourself { tool_name, times } => {
            let message = prompts::repetition(tool_name, *times);
            let (tool_name, times) = (tool_name.clone(), *times);
            EventBody::LoopDetected { tool_name, times, rescue: Rescue::Nudge, message }
        }
        Told::StartOver { tool_name, times } => {
            let message = prompts::start_over(tool_name);
            let (tool_name, times) = (tool_name.clone(), *times);
            EventBody::LoopDetected { tool_name, times, rescue: Rescue::Restart, message }
        }
        Told::YouWereCutOff => EventBody::Notice { message: prompts::cut_off() },
        Told::CallCompleteTask => EventBody::Notice { message: prompts::remind() },
        Told::CallsWereDropped { dropped } => EventBody::Notice {
            message: prompts::dropped_calls(run.settings().model.calls_taken(), *dropped),
        },
    }
}

/// Says which agent was stopped, so that it can be continued.
fn stopped(call: &ToolCall, run: &Run) -> String {
    let mut children = run.children().iter();
    let child = children.find(|(_, child)| child.call.as_ref() == Some(&call.id));
    let Some((id, child)) = child else {
        let why = "it has no result: the run was stopped before this call had ended, and has something else to do now";
        return why.to_owned();
    };
    format!(
        "the agent `{}` was stopped together with the run, before it was done (agent_id: {})",
        child.name,
        short_id(run.id(), id)
    )
}

fn refusal(why: &Refusal, call: &ToolCall, run: &Run) -> ToolError {
    match why {
        Refusal::Cancelled => ToolError::cancelled("it was not run, because the run was stopped"),
        Refusal::GivenUp => ToolError::cancelled(stopped(call, run)),
        Refusal::Interrupted => ToolError::new(
            ErrorKind::Interrupted,
            "it began, and the process that ran it ended before it did: nobody knows how far it got, it may \
             even go on, and it was not made again. Look at what there is before you repeat it",
        ),
        Refusal::Elsewhere => ToolError::new(
            ErrorKind::Interrupted,
            "this run is a copy of another and begins in the middle of this call, which may have gone on there: what \
             came of it is not known here, and it was not made again. Look at what there is before you repeat it",
        ),
        Refusal::Redirected => ToolError::cancelled(
            "it was not run: this run is a copy of another, and the user continued it in another way before this call",
        ),
        Refusal::Limit(limit) => ToolError::permission(format!(
            "it was not run, because a limit of the run is reached ({limit})"
        )),
        Refusal::OnlyCompletion => {
            ToolError::permission("it was not run, because only a last answer is possible now")
        }
        Refusal::CutOff => ToolError::failed(
            "it was not run: your answer reached its maximum length and was cut off in the middle of \
             this call. Go on in smaller steps, with less in one call",
        ),
        Refusal::AlreadyComplete => {
            ToolError::failed(format!("`{COMPLETE_TASK}` was called before; the first call counts"))
        }
        Refusal::CallFailed(tool) => ToolError::failed(format!(
            "the task is not complete yet: the call of `{tool}` beside this one failed. Look at its \
             answer, then call `{COMPLETE_TASK}` again"
        )),
    }
}
