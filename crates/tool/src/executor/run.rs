//! The second half: limit, run, record.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use convoke_core::{EventBody, Kind, Repeat, ToolError, ToolResult};
use serde_json::Value;
use tokio::time::Instant;

use super::ToolExecutor;
use super::end::Stopped;
use super::inquire::Asking;
use super::prepare::{PreparedCall, resolve};
use crate::context::ToolContext;
use crate::files::Listing;
use crate::progress::ProgressSender;
use crate::task::{Contained, Uncontained};
use crate::tool::ToolOutput;
use crate::turns::Turn;

/// How long an agent may take to stop everything it started. Its own calls have much less each.
const AGENT_STOP_GRACE: Duration = Duration::from_mins(2);

/// How far a call got.
pub(super) enum Ran {
    /// It is over.
    Ended(Box<ToolResult>),
    /// What it started waits for a person.
    Parked(Box<ToolResult>),
}

/// Why a call was told to stop.
enum Stop {
    OutOfTime(Duration),
    Cancelled,
}

impl ToolExecutor {
    /// Runs a call that may run. One that somebody has to be asked about does not.
    pub async fn run(&self, prepared: PreparedCall) -> ToolResult {
        match self.run_or_park(prepared).await {
            Ran::Ended(result) | Ran::Parked(result) => *result,
        }
    }

    /// Runs a call that may run, and tells whether that has ended.
    pub(super) async fn run_or_park(&self, prepared: PreparedCall) -> Ran {
        let ran = self.run_in_turn(prepared).await;
        if let Ran::Ended(result) = &ran {
            self.tell_of(result).await;
        }
        ran
    }

    async fn run_in_turn(&self, prepared: PreparedCall) -> Ran {
        if let Some(question) = &prepared.question {
            let reason = format!("{}, and nobody was asked", question.reason);
            return Ran::Ended(prepared.ticket.denied(ToolError::permission(reason)));
        }
        let (context, kind, concurrency) = (&self.0.context, prepared.kind, prepared.concurrency);
        let places = prepared.written_places();
        let waiting = async {
            let writes = resolve(places).await;
            (self.0.turns.take(kind, concurrency, (&self.0.locks, &writes)).await, writes)
        };
        let (turn, writes) = tokio::select! {
            biased;
            () = context.cancelled() => return prepared.ticket.stopped(None).into(),
            waited = waiting => waited,
        };
        // Somebody may have put a link there while the call waited for its turn, or for an answer.
        if let Some(path) = prepared.redirected() {
            let reason = format!("`{path}` leads elsewhere now than when it was decided about");
            return Ran::Ended(prepared.ticket.denied(ToolError::permission(reason)));
        }
        let turn = Arc::new(turn);
        let ran = self.run_now(prepared, Arc::clone(&turn)).await;
        self.forget_what_changed(kind, &writes);
        drop(turn);
        ran
    }

    async fn run_now(&self, prepared: PreparedCall, turn: Arc<Turn>) -> Ran {
        let PreparedCall {
            mut ticket,
            mut invocation,
            effects,
            description,
            timeout,
            repeat,
            forbidden,
            kind,
            files,
            called_with,
            ..
        } = prepared;
        let Some(invocation) = invocation.take() else {
            let broken = "the call cannot be run: it was run already, or the tool broke down";
            return Ran::Ended(ticket.failed(ToolError::failed(broken), None));
        };
        let tool_name = ticket.tool_name().to_owned();
        ticket.begin(repeat);
        let started = EventBody::ToolCallStarted {
            tool_name: tool_name.clone(),
            description,
            effects,
            repeat,
        };
        if let Err(error) = ticket.record(started) {
            return Ran::Ended(ticket.failed(error, None));
        }
        // What cannot be made a second time is on disk as begun before it begins.
        if repeat == Repeat::Unsafe
            && let Err(error) = ticket.sync().await
        {
            return Ran::Ended(ticket.failed(error, None));
        }
        let inquirer = Arc::new(Asking::of(
            self.clone(),
            tool_name.clone(),
            ticket.entry().cloned(),
            called_with,
        ));
        let (recorder, entered) = (self.0.recorder.clone(), Arc::clone(&self.0.entered));
        let progress = ProgressSender::new(recorder, ticket.call().clone(), tool_name, entered);
        let token = self.0.context.cancellation().child_token();
        // However this ends, what the call left behind is told to stop.
        let _stop_the_rest = token.clone().drop_guard();
        let call = ticket.call().clone();
        let context = self.0.context.for_call(call, token.clone(), progress.clone(), turn);
        let context = context.forbidding(forbidden).inquiring(inquirer);
        let context = context.seeing(self.0.view.clone()).with_files(files);
        let own = context.clone();
        let before = listed(&own, kind).await;
        let mut work = Contained::spawn(async move { invocation.run(context).await });
        // An agent keeps its own time, which stands still while it waits for a person, and ends its own
        // calls when it has to stop. That of other calls stands still while they inquire.
        let is_agent = kind == Kind::Agent;
        let deadline = Instant::now().checked_add(timeout).filter(|_| !is_agent);
        let out_of_time = async {
            let forever = std::future::pending::<()>();
            match deadline {
                Some(deadline) => {
                    own.interlude().within(deadline, forever).await;
                }
                None => forever.await,
            }
        };

        let stop = tokio::select! {
            // A call that ends because the run was stopped has not completed: look at that first.
            biased;
            () = self.0.context.cancelled() => Stop::Cancelled,
            ended = &mut work => {
                if let Some(reason) = own.parked() {
                    return Ran::Parked(ticket.deferred(ToolError::unavailable(reason)));
                }
                note_made(&own, before).await;
                ticket.saw(own.take_noted());
                return Ran::Ended(match ended {
                    Ok(Ok(output)) => ticket.completed(output),
                    Ok(Err(error)) => ticket.failed(error, None),
                    Err(uncontained) => ticket.failed(uncontained.into(), said(&progress)),
                });
            }
            () = out_of_time => Stop::OutOfTime(timeout),
        };
        token.cancel();
        let grace = if is_agent { AGENT_STOP_GRACE } else { self.0.limits.stop_grace };
        let ended = tokio::time::timeout(grace, &mut work).await;
        if let Some(reason) = own.parked() {
            return Ran::Parked(ticket.deferred(ToolError::unavailable(reason)));
        }
        ticket.saw(own.take_noted());
        let partial = match ended {
            Ok(Ok(Ok(output))) => Some(ToolOutput { failure: None, ..output }),
            _ => said(&progress),
        };
        match stop {
            Stop::Cancelled => ticket.stopped(partial).into(),
            Stop::OutOfTime(limit) => Ran::Ended(ticket.failed(ToolError::timeout(limit), partial)),
        }
    }

    /// What a call may have changed must not be remembered as it was.
    fn forget_what_changed(&self, kind: Kind, writes: &[PathBuf]) {
        let cache = self.0.context.read_cache();
        if kind.only_looks() || kind == Kind::Fetch {
            return;
        }
        if writes.is_empty() {
            return cache.clear();
        }
        for path in writes {
            cache.forget(path);
        }
    }
}

/// Lists the files before a command of a run that knows its files.
async fn listed(context: &ToolContext, kind: Kind) -> Option<Listing> {
    if kind != Kind::Execute || context.seen_files().is_none() {
        return None;
    }
    let directory = context.working_directory().to_owned();
    let listed = tokio::task::spawn_blocking(move || {
        directory.canonicalize().ok().map(|directory| Listing::of(&directory))
    });
    listed.await.ok().flatten()
}

/// Notes the files that a command made: its run knows them.
async fn note_made(context: &ToolContext, before: Option<Listing>) {
    let Some(before) = before else { return };
    let made = tokio::task::spawn_blocking(move || before.made());
    for (path, hash) in made.await.unwrap_or_default() {
        context.note_file(&path, (hash, None, None), None);
    }
}

/// Returns the last of what a call said, if it said anything.
fn said(progress: &ProgressSender) -> Option<ToolOutput> {
    let tail = progress.tail();
    (!tail.is_empty()).then(|| ToolOutput::new(Value::String(tail)))
}

impl From<Stopped> for Ran {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Deferred(result) => Self::Parked(result),
            Stopped::Ended(result) => Self::Ended(result),
        }
    }
}

impl From<Uncontained> for ToolError {
    fn from(uncontained: Uncontained) -> Self {
        match uncontained {
            Uncontained::Panicked(message) => {
                Self::failed(format!("the tool broke down; this is a defect in it: {message}"))
            }
            Uncontained::Aborted => Self::unavailable("the runtime is shutting down"),
        }
    }
}
