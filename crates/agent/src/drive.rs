//! The loop: asks the machine what to do, does it, records it.
//!
//! Nothing is decided here. Every effect ends in events, and events are all that changes the run.

use std::sync::Arc;

use convoke_core::run::{COMPLETE_TASK, Refusal, Told};
use convoke_core::{
    CallId, Cause, Effect, ErrorKind, EventBody, Limit, Millis, Outcome, Part, Purpose, Timestamp,
    ToolCall, ToolError,
};
use convoke_tool::{Clock, RecordError, Recorder, ToolExecutor};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::ask::Question;
use crate::executor::Agent;
use crate::look_back::{read_plan, read_reflection};
use crate::running::{Control, RunReport};
use crate::state::RunState;
use crate::{compact, prompts};

/// An event could not be recorded: the run cannot go on.
#[derive(Debug)]
pub(crate) struct Unrecorded(RecordError);

impl From<RecordError> for Unrecorded {
    fn from(error: RecordError) -> Self {
        Self(error)
    }
}

/// Drives one run.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) agent: Arc<Agent>,
    pub(crate) state: Arc<RunState>,
    pub(crate) recorder: Recorder,
    pub(crate) tools: ToolExecutor,
    /// Stops the tools that are under way.
    pub(crate) stop_tools: CancellationToken,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) control: Control,
}

impl Driver {
    /// Runs from the event that starts it to its end.
    pub(crate) async fn run(self, started: EventBody) -> RunReport {
        let began = self.now();
        let ended = match self.record(started) {
            Ok(()) => self.to_the_end().await,
            Err(error) => Err(error),
        };
        let outcome = match ended {
            Ok(outcome) => outcome,
            Err(Unrecorded(error)) => Outcome::from(Cause::State).because(error.to_string()),
        };
        RunReport::new(&self.state.lock(), outcome, began, self.now())
    }

    async fn to_the_end(&self) -> Result<Outcome, Unrecorded> {
        loop {
            self.take_in_messages()?;
            let effect = self.state.lock().decide(self.now());
            match effect {
                Effect::StartTurn(turn) => self.record(EventBody::TurnStarted { turn })?,
                Effect::EndTurn(turn) => self.record(EventBody::TurnEnded { turn })?,
                Effect::Exceed(budget) => self.record(EventBody::BudgetExceeded { budget })?,
                Effect::Tell(told) => self.record(tell(told))?,
                Effect::CallModel { purpose, max_output, with_tools } => {
                    self.call_model(purpose, max_output, with_tools).await?;
                }
                Effect::Compact { kept_from, max_output } => {
                    self.compact(kept_from, max_output).await?;
                }
                Effect::CallTools(calls) => self.call_tools(calls).await?,
                Effect::Refuse { calls, why } => {
                    for call in &calls {
                        self.answer_without_running(call, Err(refusal(&why)))?;
                    }
                }
                Effect::Complete(call) => self.complete(&call)?,
                Effect::CheckAnswer(words) => self.check_answer(&words)?,
                // Something was said in the last moment: it is taken in first.
                Effect::Finish { .. } if !self.control.stop_listening() => {}
                Effect::Finish { outcome, answer } => {
                    let usage = *self.state.lock().spent();
                    self.record(EventBody::RunEnded { outcome: outcome.clone(), answer, usage })?;
                    return Ok(outcome);
                }
                Effect::Rest => return Ok(self.resting()),
            }
        }
    }

    pub(crate) fn record(&self, body: EventBody) -> Result<(), Unrecorded> {
        Ok(self.recorder.record(None, body)?)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What the user said meanwhile waits in the run for its next turn. So does the wish to stop.
    fn take_in_messages(&self) -> Result<(), Unrecorded> {
        for message in self.control.messages() {
            self.record(EventBody::UserMessage { message })?;
        }
        if let Some(cause) = self.control.is_cancelled() {
            self.cancel(cause)?;
        }
        Ok(())
    }

    fn cancel(&self, cause: Cause) -> Result<(), Unrecorded> {
        let known = self.state.lock().is_cancelled();
        if known { Ok(()) } else { self.record(EventBody::RunCancelled { cause }) }
    }

    async fn call_model(
        &self,
        purpose: Purpose,
        max_output: Option<u64>,
        with_tools: bool,
    ) -> Result<(), Unrecorded> {
        let question = Question { purpose, max_output, with_tools, messages: None };
        let words = self.ask(question).await?.map(|message| message.words());
        match (purpose, words) {
            (Purpose::Reflect, Some(words)) => {
                self.record(EventBody::Reflection(read_reflection(&words)))
            }
            (Purpose::Plan, Some(words)) => {
                self.record(EventBody::Plan { steps: read_plan(&words) })
            }
            _ => Ok(()),
        }
    }

    async fn compact(&self, kept_from: usize, max_output: Option<u64>) -> Result<(), Unrecorded> {
        let question = Question {
            purpose: Purpose::Compact,
            max_output,
            with_tools: false,
            messages: Some(kept_from),
        };
        let Some(summary) = self.ask(question).await? else { return Ok(()) };
        let (before, (after, summary)) = {
            let run = self.state.lock();
            (run.context_tokens(), compact::replacement(&run, kept_from, &summary.words()))
        };
        self.record(EventBody::Compaction { before, after, kept_from, summary })
    }

    /// Runs a batch. When the time is up or the run is stopped, the calls are told to stop, and answer.
    async fn call_tools(&self, calls: Vec<ToolCall>) -> Result<(), Unrecorded> {
        let mut batch = std::pin::pin!(self.tools.execute_batch(calls));
        loop {
            let left = self.state.lock().time_left(self.now());
            let time_is_up = async {
                match left {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = &mut batch => return self.still_recording(),
                cause = self.control.cancelled() => {
                    self.cancel(cause)?;
                    break;
                }
                () = self.state.waiting_changed() => {}
                () = time_is_up => {
                    if self.state.lock().time_left(self.now()).is_some_and(|left| left.is_zero()) {
                        self.record(EventBody::BudgetExceeded { budget: Limit::Time })?;
                        break;
                    }
                }
            }
        }
        self.stop_tools.cancel();
        batch.await;
        self.still_recording()
    }

    /// The pipeline answers calls also when nothing can be recorded any more; the run cannot go on then,
    /// since it would never learn of the answers.
    fn still_recording(&self) -> Result<(), Unrecorded> {
        Ok(self.recorder.check()?)
    }

    fn complete(&self, call: &ToolCall) -> Result<(), Unrecorded> {
        let checked = self.agent.completion.check_call(&call.arguments);
        let checked = checked.map_err(ToolError::validation);
        self.answer_without_running(call, checked)
    }

    fn check_answer(&self, words: &str) -> Result<(), Unrecorded> {
        let (value, problems) = match self.agent.completion.check_words(words) {
            Ok(value) => (value, Vec::new()),
            Err((value, problems)) => {
                let listed: Vec<String> =
                    problems.iter().map(|problem| format!("- {problem}")).collect();
                let schema = self.agent.completion.spec().map(|spec| spec.schema.to_string());
                let schema = schema.unwrap_or_default();
                (value, vec![prompts::wrong_answer(&listed.join("\n"), &schema)])
            }
        };
        self.record(EventBody::AnswerChecked { value, problems })
    }

    /// Records a call that no tool sees, and its answer.
    fn answer_without_running(
        &self,
        call: &ToolCall,
        answer: Result<Value, ToolError>,
    ) -> Result<(), Unrecorded> {
        let (tool_name, duration_ms) = (call.name.clone(), Millis::default());
        self.record_for(
            &call.id,
            EventBody::ToolCallRequested {
                tool_name: tool_name.clone(),
                params: Arc::new(call.arguments.clone()),
            },
        )?;
        let body = match answer {
            Ok(value) => EventBody::ToolCallCompleted {
                tool_name,
                result: Arc::new(value),
                content: vec![Part::text("The task is complete.")],
                display: None,
                duration_ms,
            },
            Err(error) => {
                let content =
                    vec![Part::text(format!("Error ({}): {}", error.kind, error.message))];
                if error.kind == ErrorKind::Permission {
                    EventBody::ToolCallDenied { tool_name, error, content, duration_ms }
                } else {
                    EventBody::ToolCallFailed { tool_name, error, content, duration_ms }
                }
            }
        };
        self.record_for(&call.id, body)
    }

    fn record_for(&self, call: &CallId, body: EventBody) -> Result<(), Unrecorded> {
        Ok(self.recorder.record(Some(call), body)?)
    }

    /// The machine has nothing to do, which is only so when it has ended.
    fn resting(&self) -> Outcome {
        let outcome = self.state.lock().outcome().cloned();
        outcome.unwrap_or_else(|| {
            Outcome::from(Cause::Error).because("the run has nothing to do; this is a defect")
        })
    }
}

fn tell(told: Told) -> EventBody {
    match told {
        Told::BudgetIsShort { limit, used } => {
            EventBody::BudgetWarning { budget: limit, used, message: prompts::budget(limit, used) }
        }
        Told::YouRepeatYourself { tool_name, times } => {
            let message = prompts::repetition(&tool_name, times);
            EventBody::LoopDetected { tool_name, times, message }
        }
        Told::YouWereCutOff => EventBody::Notice { message: prompts::cut_off() },
    }
}

fn refusal(why: &Refusal) -> ToolError {
    match why {
        Refusal::Cancelled => ToolError::cancelled("it was not run, because the run was stopped"),
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
