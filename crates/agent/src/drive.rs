//! The loop: asks the machine what to do, does it, records it.
//!
//! Nothing is decided here. Every effect ends in events, and events are all that changes the run. What
//! needs neither a model nor a tool is settled in `settle`; the rest is carried out here.

use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::hook::Moment;
use convoke_core::{
    Cause, Effect, EventBody, Limit, Outcome, Purpose, Timestamp, ToolCall, WorkspaceReport,
};
use convoke_tool::{Clock, RecordError, Recorder, ToolExecutor};
use tokio_util::sync::CancellationToken;

use crate::ask::Question;
use crate::completion::Completion;
use crate::executor::Agent;
use crate::running::{Control, RunReport};
use crate::settle::settled;
use crate::state::RunState;

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
    pub(crate) completion: Arc<Completion>,
    pub(crate) recorder: Recorder,
    pub(crate) tools: ToolExecutor,
    /// Stops the tools that are under way.
    pub(crate) stop_tools: CancellationToken,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) control: Control,
    /// What was changed in the workspace, once that was looked at.
    pub(crate) changed: Mutex<Option<WorkspaceReport>>,
}

impl Driver {
    /// Runs from the events that start it, or take it up again, to its end.
    pub(crate) async fn run(self, first: Vec<EventBody>) -> RunReport {
        let began = self.now();
        let ended = match first.into_iter().try_for_each(|body| self.record(body)) {
            Ok(()) => self.to_the_end().await,
            Err(error) => Err(error),
        };
        let outcome = match ended {
            Ok(outcome) => outcome,
            Err(Unrecorded(error)) => Outcome::from(Cause::State).because(error.to_string()),
        };
        let workspace = self.changed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        RunReport { workspace, ..RunReport::new(&self.state.lock(), outcome, began, now) }
    }

    async fn to_the_end(&self) -> Result<Outcome, Unrecorded> {
        loop {
            self.take_in_messages()?;
            let (effect, settled) = {
                let run = self.state.lock();
                let effect = run.decide(self.now());
                let settled = settled(&effect, &run, Some(&self.completion));
                (effect, settled)
            };
            if let Effect::Finish { .. } = effect
                && !self.control.stop_listening()
            {
                // Something was said in the last moment: it is taken in first.
                continue;
            }
            if let (Effect::Finish { .. }, [(_, ended)]) = (&effect, settled.as_slice()) {
                // They watch: the run ends either way.
                drop(self.tools.hooks().tell(Moment::End, None, ended, &self.recorder).await);
                self.look_at_the_workspace().await?;
            }
            for (call, body) in settled {
                self.recorder.record(call.as_ref(), body)?;
            }
            match effect {
                Effect::CallModel { purpose, max_output, with_tools } => {
                    self.ask(Question { purpose, max_output, with_tools, messages: None }).await?;
                }
                Effect::Compact { kept_from, max_output } => {
                    let (purpose, messages) = (Purpose::Compact, Some(kept_from));
                    self.ask(Question { purpose, max_output, with_tools: false, messages }).await?;
                }
                Effect::CallTools(calls) => self.call_tools(calls).await?,
                Effect::Finish { outcome, .. } => {
                    self.recorder.sync().await?;
                    return Ok(outcome);
                }
                Effect::Rest => return Ok(self.resting()),
                _ => {}
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

    /// What was changed is part of what came of the run, however it ends.
    async fn look_at_the_workspace(&self) -> Result<(), Unrecorded> {
        let Some(workplace) = &self.agent.workplace else { return Ok(()) };
        self.record(match workplace.changes().await {
            Ok(report) => {
                let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
                EventBody::WorkspaceChanged(changed.insert(report).clone())
            }
            Err(why) => EventBody::Warning {
                message: format!("what changed in the workspace is not known: {why}"),
            },
        })
    }

    fn cancel(&self, cause: Cause) -> Result<(), Unrecorded> {
        let known = self.state.lock().is_cancelled();
        if known { Ok(()) } else { self.record(EventBody::RunCancelled { cause }) }
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

    /// The machine has nothing to do, which is only so when it has ended.
    fn resting(&self) -> Outcome {
        let outcome = self.state.lock().outcome().cloned();
        outcome.unwrap_or_else(|| {
            Outcome::from(Cause::Error).because("the run has nothing to do; this is a defect")
        })
    }
}
