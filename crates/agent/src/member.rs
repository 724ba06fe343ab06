//! One run's place in its tree: what it needs to call agents, and what becomes of those it called.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use convoke_core::run::{Child, Refusal};
use convoke_core::{
    CallId, Cause, Effect, EventBody, Outcome, Run, RunId, Status, Timestamp, ToolError, Usage,
};
use convoke_tool::{Observer, RecordError, Recorder, ToolContext, ToolOutput};
use futures_util::FutureExt;
use serde_json::{Value, json};

use crate::background::Background;
use crate::drive::Caller;
use crate::executor::Agent;
use crate::handover::{Handover, told_later};
use crate::registry::Registered;
use crate::running::{Control, RunReport, StopCause};
use crate::seat::Seat;
use crate::settle::settled;
use crate::state::RunState;
use crate::subagent::{Begin, Order, is_stopped};
use crate::tree::{Claim, Tree};

/// Why an agent has no end of its own.
const PROCESS_LOST: &str = "the process that ran it was lost";

/// A run in a tree. Its calls find it in their context.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) tree: Arc<Tree>,
    pub(crate) agent: Arc<Agent>,
    pub(crate) recorder: Recorder,
    pub(crate) state: Arc<RunState>,
    pub(crate) control: Arc<Control>,
    /// The names of the agents from the first one's child down to this one.
    pub(crate) lineage: Arc<[String]>,
    pub(crate) seat: Seat,
    pub(crate) background: Arc<Background>,
    /// Why those below are to stop.
    pub(crate) below: StopCause,
}

impl Member {
    /// Returns the run that a call belongs to.
    pub(crate) fn of(context: &ToolContext) -> Result<Arc<Self>, ToolError> {
        context.extension::<Self>().ok_or_else(|| {
            ToolError::unavailable("agents can be called by a run only, and this call has none")
        })
    }

    /// Calls an agent, and waits for its end, unless it works in the background. A call that was made
    /// before, in a process that was lost, finds the agent it began with.
    pub(crate) async fn call(
        &self,
        order: Order,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let call = context.call();
        let known = self.tree.called(self.recorder.run(), call).or_else(|| self.goes_on_with(call));
        let (begin, claim) = match known {
            // It was taken up before the call that began it was made again.
            Some(child) if self.background.has(&child) => {
                self.tree.forget_call(self.recorder.run(), call);
                return Ok(Handover::handle(&order.agent.name, &child, self.short(&child)));
            }
            Some(child) => self.find_and_claim(child, &order)?,
            None => self.begin(&order, call)?,
        };
        let child = begin.child().clone();
        if order.background {
            if !matches!(begin, Begin::Over(..)) && !self.background.has(&child) {
                self.work_in_background(&order, begin, call, claim).await?;
            }
            self.tree.forget_call(self.recorder.run(), call);
            return Ok(Handover::handle(&order.agent.name, &child, self.short(&child)));
        }
        let report = match begin {
            Begin::Over(_, state) => RunReport::of(&state),
            begin => {
                let _away = self.seat.leave();
                let stop = (context.cancellation(), self.below.clone());
                let prepared = match self.prepare(&order, begin, call, stop).await {
                    Ok(prepared) => prepared,
                    Err(error) => return Err(self.given_up(&child, error)),
                };
                let caller = Caller {
                    recorder: self.recorder.clone(),
                    call: call.clone(),
                    progress: context.progress().clone(),
                };
                prepared.driver.called_by(caller).run(prepared.first).await
            }
        };
        drop(claim);
        if report.outcome.status == Status::Parked {
            context.park(format!("the agent `{}` waits for an answer", order.agent.name));
            return Ok(ToolOutput::default());
        }
        record_end(&self.recorder, &self.state, &report, None)
            .map_err(|error| ToolError::unavailable(error.to_string()))?;
        if stops_with(&self.control, &report) && !order.agent.definition().run.at_most_once {
            context.park(format!("the agent `{}` was stopped with the run", order.agent.name));
            return Ok(ToolOutput::default());
        }
        self.tree.forget_call(self.recorder.run(), call);
        Ok(Handover::new(&order.agent, &report, self.short(&report.run)).into_output())
    }

    /// Returns the agent that goes on with a call that was answered and is made again.
    fn goes_on_with(&self, call: &CallId) -> Option<RunId> {
        let run = self.state.lock();
        let goes_on = |child: &Child| {
            !child.background && child.outcome.is_none() && child.call.as_ref() == Some(call)
        };
        let mut children = run.children().iter();
        children.find(|(_, child)| goes_on(child)).map(|(id, _)| id.clone())
    }

    /// Finds an agent again that a call began with, and claims it.
    fn find_and_claim(&self, child: RunId, order: &Order) -> Result<(Begin, Claim), ToolError> {
        let busy = || {
            let id = self.short(&child);
            ToolError::unavailable(format!("the agent `{id}` works; wait for it first"))
        };
        let claim = self.tree.claim(&child).ok_or_else(busy)?;
        Ok((self.find_again(child, order), claim))
    }

    /// An agent that was called cannot go on: its caller knows how it ended and what it used.
    fn given_up(&self, child: &RunId, error: ToolError) -> ToolError {
        if self.state.lock().children().contains_key(child) {
            // What cannot be recorded ends the run for that reason.
            drop(self.end_lost(child, Outcome::from(Cause::Error).because(&error.message), None));
        }
        error
    }

    /// Makes the report of an agent that did not end by itself.
    fn report_of_lost(&self, child: &RunId, outcome: Outcome) -> RunReport {
        let now = Timestamp::default();
        match self.tree.run(child) {
            Some(state) => RunReport::new(&state.lock(), outcome, now, now),
            None => RunReport::new(&Run::new(child.clone()), outcome, now, now),
        }
    }

    /// Ends an agent that nobody takes up, and tells its caller.
    fn end_lost(
        &self,
        child: &RunId,
        outcome: Outcome,
        told: Option<String>,
    ) -> Result<(), RecordError> {
        close_lost(&self.tree, (&self.recorder, &self.state), child, &outcome)?;
        record_end(&self.recorder, &self.state, &self.report_of_lost(child, outcome), told)
    }

    /// Agents that may run only once, and were at work when the process was lost, are over: nobody takes them
    /// up, and the call that they were called with is answered as interrupted. So are answers for servers, which
    /// nobody waits for any more, and agents that were abandoned when the user continued a copy in another way.
    pub(crate) fn give_up_lost(&self) -> Result<(), RecordError> {
        let lost: Vec<(RunId, bool)> = {
            let run = self.state.lock();
            let works = run.children().iter().filter(|(id, child)| {
                let once = || {
                    let known = self.agent.registered(&child.name);
                    known.is_some_and(|it| it.run.at_most_once)
                        || child.call.as_ref().is_some_and(|call| run.is_lost(call))
                        || self.tree.is_counsel(id)
                };
                child.outcome.is_none() && (child.abandoned || (!child.background && once()))
            });
            works.map(|(id, child)| (id.clone(), child.abandoned)).collect()
        };
        for (child, abandoned) in lost {
            let state = self.tree.run(&child);
            let status = state.as_ref().and_then(|state| {
                let run = state.lock();
                run.outcome().map(|outcome| outcome.status)
            });
            match (state, status) {
                (_, None | Some(Status::Parked)) if abandoned => {
                    let lost = Outcome::from(Cause::Interrupted);
                    self.end_lost(&child, lost.because("the user continued in another way"), None)?;
                }
                // It waits for a person, and its call with it.
                (_, Some(Status::Parked)) => {}
                // It ended, and only its caller had yet to hear of it.
                (Some(state), Some(_)) => {
                    record_end(&self.recorder, &self.state, &RunReport::of(&state), None)?;
                }
                _ => {
                    let lost = Outcome::from(Cause::Terminated).because(PROCESS_LOST);
                    self.end_lost(&child, lost, None)?;
                }
            }
        }
        Ok(())
    }

    /// Lets an agent work while its caller goes on.
    async fn work_in_background(
        &self,
        order: &Order,
        begin: Begin,
        call: &CallId,
        claim: Claim,
    ) -> Result<(), ToolError> {
        let child = begin.child().clone();
        let stop = (self.control.token(), self.below.clone());
        let prepared = self.prepare(order, begin, call, stop).await?;
        let (recorder, state) = (self.recorder.clone(), Arc::clone(&self.state));
        let (agent, id) = (Arc::clone(&order.agent), self.short(&child).to_owned());
        let control = Arc::clone(&self.control);
        let broken = Outcome::from(Cause::Error).because("the agent broke down; this is a defect");
        let broken = self.report_of_lost(&child, broken);
        self.background.add(&child, prepared.handle, async move {
            let work = AssertUnwindSafe(prepared.driver.run(prepared.first)).catch_unwind();
            let report = work.await.unwrap_or(broken);
            // One that is stopped with its caller is taken up with it: there is nothing to tell.
            let told = told_later(&agent, &report, &id).filter(|_| !stops_with(&control, &report));
            drop(claim);
            // A stream that is closed takes nothing, and the run it belongs to ends for that reason.
            drop(record_end(&recorder, &state, &report, told));
        });
        Ok(())
    }

    /// Takes up the agents again that worked in the background when the process was lost, or waited.
    pub(crate) async fn take_up_background(&self) -> Result<(), RecordError> {
        let lost: Vec<(RunId, String, CallId)> = {
            let run = self.state.lock();
            let children = run.children().iter();
            let works = children.filter(|(_, child)| child.background && child.outcome.is_none());
            let facts = works
                .map(|(id, child)| Some((id.clone(), child.name.clone(), child.call.clone()?)));
            facts.flatten().collect()
        };
        for (child, name, call) in lost {
            if self.background.has(&child) {
                continue;
            }
            let taken_up = match self.agent.registered(&name) {
                Some(agent) => self.take_up(&child, agent, &call).await,
                None => Err(ToolError::not_found("there is no agent of that name any more")),
            };
            if let Err(ToolError { message: why, .. }) = taken_up {
                let id = self.short(&child);
                let message = format!("The agent `{name}` (agent_id: {id}) could not go on: {why}");
                self.end_lost(&child, Outcome::from(Cause::Error).because(&why), Some(message))?;
            }
        }
        Ok(())
    }

    async fn take_up(
        &self,
        child: &RunId,
        agent: Arc<Registered>,
        call: &CallId,
    ) -> Result<(), ToolError> {
        let order = Order::again(agent, child, self.tree.given(child));
        let (begin, claim) = self.find_and_claim(child.clone(), &order)?;
        match begin {
            Begin::Over(_, state) => {
                let report = RunReport::of(&state);
                let told = told_later(&order.agent, &report, self.short(child));
                record_end(&self.recorder, &self.state, &report, told)
                    .map_err(|error| ToolError::unavailable(error.to_string()))
            }
            begin => self.work_in_background(&order, begin, call, claim).await,
        }
    }

    /// Returns the id by which this run knows an agent that it called.
    pub(crate) fn short<'a>(&self, child: &'a RunId) -> &'a str {
        short_id(self.recorder.run(), child)
    }

    /// Returns the agent that this run knows by an id.
    pub(crate) fn child_of(&self, id: &str) -> RunId {
        let whole = RunId::new(id);
        if self.state.lock().children().contains_key(&whole) {
            return whole;
        }
        RunId::new(format!("{}-{id}", self.recorder.run()))
    }

    /// Says that an agent is no child of this run, if that is so.
    pub(crate) fn check_child(&self, child: &RunId) -> Result<(), ToolError> {
        let run = self.state.lock();
        if run.children().contains_key(child) {
            return Ok(());
        }
        let children = run.children().iter();
        let named = children.map(|(id, child)| format!("{} ({})", self.short(id), child.name));
        let known: Vec<String> = named.collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let id = self.short(child);
        let message = format!("you called no agent with the id `{id}`; there are: {known}");
        Err(ToolError::not_found(message))
    }

    /// Says that an agent is another one than it is taken for, if that is so.
    pub(crate) fn check_name(&self, child: &RunId, name: &str) -> Result<(), ToolError> {
        let run = self.state.lock();
        match run.children().get(child) {
            Some(known) if known.name != name => Err(ToolError::validation([format!(
                "the agent `{}` is `{}` and not `{name}`",
                self.short(child),
                known.name
            )])),
            _ => Ok(()),
        }
    }

    /// Says how an agent stands: what came of it, or that it works.
    pub(crate) fn standing(&self, child: &RunId) -> ToolOutput {
        let name = self.state.lock().children().get(child).map(|known| known.name.clone());
        let agent = name.and_then(|name| self.agent.registered(&name));
        let state = self.tree.run(child).filter(|_| !self.background.has(child));
        if let (Some(state), Some(agent)) = (state, agent)
            && state.lock().outcome().is_some()
        {
            let report = RunReport::of(&state);
            return Handover::new(&agent, &report, self.short(child)).into_output();
        }
        self.roll_call()
    }

    /// Lists the agents that this run called.
    pub(crate) fn roll_call(&self) -> ToolOutput {
        let run = self.state.lock();
        let agents = run.children().iter().map(|(id, child)| {
            let status = match &child.outcome {
                None => json!("working"),
                Some(outcome) => json!(outcome.status),
            };
            let background = child.background;
            let id = self.short(id);
            json!({ "agent_id": id, "agent": child.name, "status": status, "background": background })
        });
        ToolOutput::new(json!({ "agents": agents.collect::<Vec<Value>>() }))
    }
}

/// Returns the id by which a run knows an agent that it called.
pub(crate) fn short_id<'a>(caller: &RunId, child: &'a RunId) -> &'a str {
    let below = child.as_str().strip_prefix(caller.as_str());
    below.and_then(|below| below.strip_prefix('-')).unwrap_or(child.as_str())
}

/// Tells whether an agent ended because its caller is being stopped: it is found again when that is.
fn stops_with(caller: &Control, report: &RunReport) -> bool {
    is_stopped(&report.outcome)
        && caller.is_cancelled().is_some_and(|cause| cause != Cause::Timeout)
}

/// Ends the run of an agent that began and that nobody takes up, and the runs below it: a request that had no answer is
/// charged, every call gets its end, and so does the run.
fn close_lost(
    tree: &Tree,
    (caller, callers): (&Recorder, &RunState),
    child: &RunId,
    outcome: &Outcome,
) -> Result<(), RecordError> {
    let Some(state) = tree.run(child) else { return Ok(()) };
    let name = callers.lock().children().get(child).map(|known| known.name.clone());
    let recorder = caller.child(child.clone(), &name.unwrap_or_default());
    let recorder = recorder.observed_by(Arc::clone(&state) as Arc<dyn Observer>);
    let (begun, below) = {
        let run = state.lock();
        let works = run.children().iter().filter(|(_, known)| known.outcome.is_none());
        let below: Vec<RunId> = works.map(|(id, _)| id.clone()).collect();
        (run.task().is_some() && run.outcome().is_none(), below)
    };
    if !begun {
        return Ok(());
    }
    for below in below {
        close_lost(tree, (&recorder, &state), &below, outcome)?;
        let now = Timestamp::default();
        let report = match tree.run(&below) {
            Some(run) => RunReport::new(&run.lock(), outcome.clone(), now, now),
            None => RunReport::new(&Run::new(below.clone()), outcome.clone(), now, now),
        };
        record_end(&recorder, &state, &report, None)?;
    }
    let (asked, usage, calls) = {
        let run = state.lock();
        (run.asking(), run.lost_answer(), run.calls_without_end())
    };
    if let Some(purpose) = asked {
        tree.charge(child, usage);
        recorder.record(
            None,
            EventBody::ModelFailed {
                purpose,
                cause: outcome.cause,
                error: "interrupted".to_owned(),
                message: PROCESS_LOST.to_owned(),
                status: None,
                hint: None,
                partial: None,
                usage,
            },
        )?;
    }
    let refused = Effect::Refuse { calls, why: Refusal::Interrupted };
    let ends = settled(&refused, &state.lock(), None);
    for (call, body) in ends {
        recorder.record(call.as_ref(), body)?;
    }
    let (outcome, usage) = (outcome.clone(), *state.lock().spent());
    recorder.record(None, EventBody::RunEnded { outcome, answer: None, usage })
}

/// Records that an agent ended, once, with what it used since that was last said.
pub(crate) fn record_end(
    recorder: &Recorder,
    state: &RunState,
    report: &RunReport,
    message: Option<String>,
) -> Result<(), RecordError> {
    let child = report.run.clone();
    let (call, counted) = match state.lock().children().get(&child) {
        Some(known) if known.outcome.is_some() => return Ok(()),
        Some(known) => (known.call.clone(), known.counted),
        None => (None, Usage::default()),
    };
    let usage = report.usage.since(&counted);
    let outcome = Outcome { partial: None, ..report.outcome.clone() };
    recorder.record(call.as_ref(), EventBody::AgentEnded { child, outcome, usage, message })
}
