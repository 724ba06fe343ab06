//! The second half: limit, run, record.

use std::path::PathBuf;
use std::time::Duration;

use convoke_core::{EventBody, Kind, ToolError, ToolResult};
use serde_json::Value;
use tokio::sync::{RwLockReadGuard, RwLockWriteGuard, SemaphorePermit};

use super::ToolExecutor;
use super::prepare::PreparedCall;
use crate::locks::HeldPaths;
use crate::progress::ProgressSender;
use crate::task::{Contained, Uncontained};
use crate::tool::ToolOutput;

/// What a call holds while it runs. It is taken in this order, so nobody who holds a permit waits for
/// a lock.
struct Turn<'a> {
    _quiet: Quiet<'a>,
    _paths: Option<HeldPaths>,
    _permit: Option<SemaphorePermit<'a>>,
}

enum Quiet<'a> {
    Shared(#[expect(dead_code, reason = "held, not read")] RwLockReadGuard<'a, ()>),
    Alone(#[expect(dead_code, reason = "held, not read")] RwLockWriteGuard<'a, ()>),
    Exempt,
}

/// Why a call was told to stop.
enum Stop {
    OutOfTime(Duration),
    Cancelled,
}

impl ToolExecutor {
    /// Runs a call that may run.
    pub async fn run(&self, prepared: PreparedCall) -> ToolResult {
        let (context, kind) = (&self.0.context, prepared.kind);
        let (alone, writes) = (prepared.wants_to_be_alone(), prepared.writes());
        let turn = tokio::select! {
            biased;
            () = context.cancelled() => {
                return *prepared.ticket.failed(ToolError::cancelled("the run was stopped"), None);
            }
            turn = self.wait_for_turn(kind, alone, &writes) => turn,
        };
        let result = self.run_now(prepared).await;
        self.forget_what_changed(kind, &writes);
        drop(turn);
        *result
    }

    /// An agent's call holds nothing while it runs: its own calls take what they need.
    async fn wait_for_turn(&self, kind: Kind, alone: bool, writes: &[PathBuf]) -> Turn<'_> {
        if kind == Kind::Agent {
            return Turn { _quiet: Quiet::Exempt, _paths: None, _permit: None };
        }
        let quiet = if alone {
            Quiet::Alone(self.0.quiet.write().await)
        } else {
            Quiet::Shared(self.0.quiet.read().await)
        };
        let paths =
            if writes.is_empty() { None } else { Some(self.0.locks.hold(writes.to_vec()).await) };
        // The semaphore is never closed; without a permit the call would still be in order.
        let permit = self.0.permits.acquire().await.ok();
        Turn { _quiet: quiet, _paths: paths, _permit: permit }
    }

    async fn run_now(&self, prepared: PreparedCall) -> Box<ToolResult> {
        let PreparedCall { ticket, mut invocation, effects, description, timeout, .. } = prepared;
        let Some(invocation) = invocation.take() else {
            return ticket.failed(ToolError::failed("the call was run already"), None);
        };
        let tool_name = ticket.tool_name().to_owned();
        let started =
            EventBody::ToolCallStarted { tool_name: tool_name.clone(), description, effects };
        if let Err(error) = ticket.record(started) {
            return ticket.failed(error, None);
        }
        let progress =
            ProgressSender::new(self.0.recorder.clone(), ticket.call().clone(), tool_name);
        let token = self.0.context.cancellation().child_token();
        let context =
            self.0.context.for_call(ticket.call().clone(), token.clone(), progress.clone());
        let mut work = Contained::spawn(async move { invocation.run(context).await });

        let stop = tokio::select! {
            ended = &mut work => return match ended {
                Ok(Ok(output)) => ticket.completed(output),
                Ok(Err(error)) => ticket.failed(error, None),
                Err(uncontained) => ticket.failed(uncontained.into(), said(&progress)),
            },
            () = self.0.context.cancelled() => Stop::Cancelled,
            () = tokio::time::sleep(timeout) => Stop::OutOfTime(timeout),
        };
        token.cancel();
        let partial = match tokio::time::timeout(self.0.limits.stop_grace, &mut work).await {
            Ok(Ok(Ok(output))) => Some(ToolOutput { failure: None, ..output }),
            _ => said(&progress),
        };
        ticket.failed(stop.into(), partial)
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

/// Returns the last of what a call said, if it said anything.
fn said(progress: &ProgressSender) -> Option<ToolOutput> {
    let tail = progress.tail();
    (!tail.is_empty()).then(|| ToolOutput::new(Value::String(tail)))
}

impl From<Stop> for ToolError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::OutOfTime(limit) => Self::timeout(limit),
            Stop::Cancelled => Self::cancelled("the run was stopped"),
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
