//! The loop: asks the machine what to do, does it, records it.
//!
//! Nothing is decided here. Every effect ends in events, and events are all that changes the run. What
//! needs neither a model nor a tool is settled in `settle`; the rest is carried out here.

use std::pin::Pin;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use convoke_core::hook::Moment;
use convoke_core::ledger::{MIN_OUTPUT, Wish};
use convoke_core::{
    CallId, Cause, Effect, EventBody, Limit, Outcome, Purpose, Timestamp, ToolCall, WorkspaceReport,
};
use convoke_tool::catalogue::{Arrivals, SourceChange};
use convoke_tool::{Deferral, ProgressSender, RecordError, Recorder, ToolExecutor};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use crate::ask::Question;
use crate::completion::Completion;
use crate::executor::Agent;
use crate::member::Member;
use crate::running::{Control, RunReport};
use crate::settle::settled;
use crate::state::RunState;
use crate::tree::{Shortage, own_use};

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
    /// Leaves the calls open that are stopped with the run.
    pub(crate) deferral: Deferral,
    pub(crate) control: Arc<Control>,
    /// Its place in the tree.
    pub(crate) member: Arc<Member>,
    /// Who waits for it.
    pub(crate) caller: Option<Caller>,
    /// How often in a row the model was asked again whose answer broke off, or who was away.
    pub(crate) broken: AtomicU32,
    /// What was changed in the workspace, once that was looked at.
    pub(crate) changed: Mutex<Option<WorkspaceReport>>,
}

/// Who waits for a run: the events of the run that called it, the call, and what the call shows meanwhile.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) recorder: Recorder,
    pub(crate) call: CallId,
    pub(crate) progress: ProgressSender,
}

impl Driver {
    /// Shows its caller what it thinks, and when it has nothing but a person to wait for.
    pub(crate) fn called_by(mut self, caller: Caller) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Runs from the events that start it, or take it up again, to its end.
    /// An agent's calls may run agents in turn, so what this returns has a size of its own.
    pub(crate) fn run(
        self,
        first: Vec<EventBody>,
    ) -> Pin<Box<dyn Future<Output = RunReport> + Send>> {
        Box::pin(self.run_through(first))
    }

    async fn run_through(self, first: Vec<EventBody>) -> RunReport {
        self.take_seat().await;
        let began = self.now();
        let changes = self.arrivals().map(|arrivals| arrivals.changes());
        let ended = match first.into_iter().try_for_each(|body| self.record(body)) {
            Ok(()) => {
                self.arrivals().inspect(|arrivals| arrivals.expect(self.recorder.run()));
                tokio::select! {
                    biased;
                    ended = self.all_of_it() => ended,
                    unrecorded = self.tell_of(changes) => Err(unrecorded),
                }
            }
            Err(error) => Err(error),
        };
        let outcome = match ended {
            Ok(outcome) => outcome,
            Err(Unrecorded(error)) => Outcome::from(Cause::State).because(error.to_string()),
        };
        let now = self.now();
        let workspace = self.changed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut report = RunReport::new(&self.state.lock(), outcome, began, now);
        if let Some(task) = report.task.as_mut().filter(|_| self.member.lineage.is_empty()) {
            self.member.tree.ledgers_below(self.recorder.run(), &mut task.ledger);
        }
        RunReport { workspace, ..report }
    }

    /// Returns the tools that may not be here yet, for the first run of a tree: the others share what it learns.
    fn arrivals(&self) -> Option<&Arc<dyn Arrivals>> {
        let many = self.agent.many_tools.as_ref().filter(|_| self.member.lineage.is_empty());
        many.and_then(|many| many.arrivals.as_ref())
    }

    /// Records what becomes of servers while the run works.
    async fn tell_of(&self, changes: Option<BoxStream<'static, SourceChange>>) -> Unrecorded {
        let Some(mut changes) = changes else { return std::future::pending().await };
        while let Some(SourceChange { name: server, state, reason }) = changes.next().await {
            // Nothing is recorded behind the end of the run.
            if self.state.lock().outcome().is_some() {
                break;
            }
            let body = if state == SourceChange::WARNING {
                EventBody::Warning { message: reason.unwrap_or_default() }
            } else {
                EventBody::McpServerState { server, state, reason }
            };
            if let Err(error) = self.record(body) {
                return error;
            }
        }
        std::future::pending().await
    }

    async fn all_of_it(&self) -> Result<Outcome, Unrecorded> {
        self.member.give_up_lost()?;
        self.keep_a_share();
        self.member.take_up_background().await?;
        self.to_the_end().await
    }

    /// Keeps what its own next answer takes, so that agents below leave it that.
    fn keep_a_share(&self) {
        let kept = self.state.lock().kept();
        self.member.tree.keep_for(self.recorder.run(), kept);
    }

    /// Waits until there is a seat for it, unless it is to stop, which needs none.
    pub(crate) async fn take_seat(&self) {
        tokio::select! {
            biased;
            () = self.member.seat.take() => {}
            _ = self.control.cancelled() => {}
        }
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
                self.recorder.record(call.as_ref(), self.explained(body))?;
            }
            match effect {
                Effect::CallModel { purpose, max_output, with_tools } => {
                    self.take_seat().await;
                    self.ask(Question { purpose, max_output, with_tools, messages: None }).await?;
                }
                Effect::Compact { kept_from, max_output } => {
                    self.take_seat().await;
                    let (purpose, messages) = (Purpose::Compact, Some(kept_from));
                    self.ask(Question { purpose, max_output, with_tools: false, messages }).await?;
                }
                Effect::CallTools(calls) => self.call_tools(calls).await?,
                Effect::AskToGoOn { call, tool_name } => {
                    let reason = "it makes no progress: nothing new comes of what it does";
                    self.tools.ask_to_go_on(call, &tool_name, reason).await?;
                }
                Effect::AwaitAgents => {
                    self.await_agents().await?;
                    self.still_recording()?;
                }
                Effect::StopAgents => {
                    if self.state.lock().grace_cause() == Cause::Timeout {
                        self.member.below.set(Cause::Timeout);
                    }
                    self.member.background.stop(None).await;
                    self.still_recording()?;
                }
                Effect::Finish { outcome, .. } => {
                    self.recorder.sync().await?;
                    return Ok(outcome);
                }
                Effect::Rest => return Ok(self.resting()),
                _ => {}
            }
        }
    }

    /// Says of a limit that is reached whose it is, where the run was left too little by those above it: it may not
    /// have used anything.
    fn explained(&self, body: EventBody) -> EventBody {
        let Some(limit) = reached(&body) else { return body };
        let wish = {
            let run = self.state.lock();
            let price = run.settings().model.price;
            Wish { input: run.context_tokens(), output: MIN_OUTPUT, price }
        };
        match self.member.tree.shortage_above(self.recorder.run(), limit, &wish) {
            Some(Shortage { limit, of, why }) => {
                EventBody::BudgetExceeded { budget: limit, of: Some(of), why }
            }
            None => body,
        }
    }

    /// Records an event. What it says was used is charged to the run and to all above it.
    pub(crate) fn record(&self, body: EventBody) -> Result<(), Unrecorded> {
        let used = own_use(&body);
        self.recorder.record(None, body)?;
        if let Some(used) = used {
            self.member.tree.charge(self.recorder.run(), used);
        }
        Ok(())
    }

    /// Waits until an agent that works on its own has ended, or there is something else to do.
    async fn await_agents(&self) -> Result<(), Unrecorded> {
        let _away = self.member.seat.leave();
        let left = self.state.lock().time_left(self.now());
        tokio::select! {
            biased;
            () = self.member.background.one_ended(None) => {}
            () = self.control.said() => {}
            cause = self.control.cancelled() => self.cancel(cause)?,
            () = sleep_for(left) => self.record(out_of_time())?,
        }
        Ok(())
    }

    /// Tells whoever waits for this run whether there is nothing but a person to wait for.
    fn tell_caller(&self, waits: bool) -> Result<(), Unrecorded> {
        let Some(Caller { recorder, call, .. }) = &self.caller else { return Ok(()) };
        let child = self.recorder.run().clone();
        Ok(recorder.record(Some(call), EventBody::AgentWaits { child, waits })?)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.recorder.now()
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
    async fn call_tools(&self, mut calls: Vec<ToolCall>) -> Result<(), Unrecorded> {
        match self.member.tree.take_calls(self.recorder.run(), calls.len()) {
            Ok(granted) => calls.truncate(granted),
            Err(of) => {
                return self.record(EventBody::BudgetExceeded {
                    budget: Limit::ToolCalls,
                    of: Some(of),
                    why: None,
                });
            }
        }
        self.keep_a_share();
        let mut batch = std::pin::pin!(self.tools.execute_batch(calls));
        let mut waits = false;
        loop {
            let (left, only_waits) = {
                let run = self.state.lock();
                (run.time_left(self.now()), run.only_waits())
            };
            if only_waits != waits {
                waits = only_waits;
                self.tell_caller(waits)?;
            }
            let time_is_up = sleep_for(left);
            tokio::select! {
                biased;
                _ = &mut batch => {
                    if waits {
                        self.tell_caller(false)?;
                    }
                    return self.still_recording();
                }
                cause = self.control.cancelled() => {
                    self.cancel(cause)?;
                    break;
                }
                () = self.state.waiting_changed() => {}
                () = time_is_up => {
                    if self.state.lock().time_left(self.now()).is_some_and(|left| left.is_zero()) {
                        self.record(out_of_time())?;
                        self.member.below.set(Cause::Timeout);
                        break;
                    }
                }
            }
        }
        // A run that goes on, or whose caller does, needs answers; one that is resumed finds its calls open.
        if !self.state.lock().is_interrupted() {
            self.deferral.end();
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

/// Returns the limit of its own that a run has reached.
const fn reached(body: &EventBody) -> Option<Limit> {
    match body {
        EventBody::BudgetExceeded { budget, of: None, .. } => Some(*budget),
        _ => None,
    }
}

/// Waits this long; forever, where there is no end to it.
pub(crate) async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// The time is up.
pub(crate) const fn out_of_time() -> EventBody {
    EventBody::BudgetExceeded { budget: Limit::Time, of: None, why: None }
}
