//! The calls of a connection that are under way, and how what a server sends finds its way to them.
//!
//! Progress names its call. A question does not always: over HTTP it arrives on the answer of its call,
//! over the streams of a program it may belong to any. It is put to whoever asks the person of *all* calls
//! under way, and time stands still for all of them; if those are different people, nobody can tell whom it
//! concerns, and nobody is asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use convoke_tool::{Interlude, Pause, ProgressSender, ToolContext};
use rmcp::model::{ProgressNotificationParam, ProgressToken, RequestId};
use tokio::sync::Notify;

use super::elicit::{ConcernedCall, Elicitor};
use super::in_call::Asker;
use super::sample::ForCall;

/// The calls of one connection.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<BTreeMap<u64, Arc<CallUnderWay>>>);

/// One call, for as long as it takes.
#[derive(Debug)]
pub(super) struct CallUnderWay {
    /// The tool that was called, as the server knows it.
    tool: Option<String>,
    progress: ProgressSender,
    asker: Option<Arc<Asker>>,
    sampling: Option<ForCall>,
    sign_of_life: Notify,
    /// The task that the call is, where it is one, as the server knows it.
    task: OnceLock<String>,
    task_came_on: Notify,
    /// When questions to a person waited for their answers.
    asking: Arc<Interlude>,
    /// What it is known by: one that is a task makes several requests.
    names: Mutex<Vec<(RequestId, ProgressToken)>>,
}

/// Takes a call out of the list when it is over.
#[derive(Debug)]
pub(super) struct Enrolled {
    calls: Arc<Calls>,
    /// Its place in the list; requests that no call made have none.
    number: Option<u64>,
    call: Arc<CallUnderWay>,
}

impl Calls {
    /// Puts a call on the list. What it is known by is told later, once it was sent. What is asked for no
    /// call is not listed: nobody is asked, and nothing is shown, on its behalf.
    pub(super) fn enrol(
        self: &Arc<Self>,
        tool: Option<&str>,
        context: Option<&ToolContext>,
    ) -> Enrolled {
        let call = Arc::new(CallUnderWay {
            tool: tool.map(str::to_owned),
            progress: context.map_or_else(ProgressSender::silent, |own| own.progress().clone()),
            asker: Asker::of(context),
            sampling: ForCall::of(context),
            sign_of_life: Notify::new(),
            task: OnceLock::new(),
            task_came_on: Notify::new(),
            asking: Arc::default(),
            names: Mutex::default(),
        });
        let number = context.map(|_| {
            let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let number = calls.last_key_value().map_or(0, |(last, _)| last + 1);
            calls.insert(number, Arc::clone(&call));
            number
        });
        Enrolled { calls: Arc::clone(self), number, call }
    }

    /// Shows progress to the call it belongs to.
    pub(super) fn progress(&self, update: &ProgressNotificationParam) {
        let Some(call) = self.find(|(_, token)| *token == update.progress_token) else {
            return;
        };
        call.sign_of_life.notify_one();
        let note = update.message.clone().unwrap_or_default();
        match update.total {
            // What is said one after the other is not one text.
            Some(total) if total > 0.0 && !note.is_empty() => {
                let note = format!("{}\n", note.trim_end());
                call.progress.fraction(update.progress / total, note);
            }
            Some(total) if total > 0.0 => call.progress.fraction(update.progress / total, note),
            _ if !note.is_empty() => call.progress.text(format!("{}\n", note.trim_end())),
            _ => call.progress.text(format!("{}\n", update.progress)),
        }
    }

    /// Wakes the call that is this task: the server says that it has come on.
    pub(super) fn task_came_on(&self, task: &str) {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |call: &&Arc<CallUnderWay>| call.task.get().is_some_and(|own| own == task);
        if let Some(call) = calls.values().find(is_it) {
            call.task_came_on.notify_one();
        }
    }

    /// Returns the calls that wait while a question is answered: the one it arrived with, or all that it may belong
    /// to. The first is the one to ask for them; there is none where nobody can tell whom to ask.
    pub(super) fn concerned(&self, origin: Option<&RequestId>) -> Vec<Arc<CallUnderWay>> {
        if let Some(origin) = origin
            && let Some(call) = self.find(|(id, _)| id == origin)
        {
            return vec![call];
        }
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let calls: Vec<_> = calls.values().rev().cloned().collect();
        let alike = calls.first().is_some_and(|one| calls.iter().all(|call| call.asks_like(one)));
        if alike { calls } else { Vec::new() }
    }

    /// Tells whether a call is not over yet, and is not about to be.
    pub(super) fn has(&self, call: &Arc<CallUnderWay>) -> bool {
        let is_stopped = call.asker.as_ref().is_some_and(|asker| asker.is_stopped());
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !is_stopped && calls.values().any(|other| Arc::ptr_eq(other, call))
    }

    fn find(&self, is: impl Fn(&(RequestId, ProgressToken)) -> bool) -> Option<Arc<CallUnderWay>> {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |call: &&Arc<CallUnderWay>| {
            call.names.lock().unwrap_or_else(PoisonError::into_inner).iter().any(&is)
        };
        calls.values().find(known).cloned()
    }
}

impl CallUnderWay {
    fn asks_like(&self, other: &Self) -> bool {
        let askers = match (&self.asker, &other.asker) {
            (Some(own), Some(others)) => own.asks_like(others),
            (None, None) => true,
            _ => false,
        };
        let samplers = match (&self.sampling, &other.sampling) {
            (Some(own), Some(others)) => Arc::ptr_eq(&own.sampler, &others.sampler),
            (None, None) => true,
            _ => false,
        };
        askers && samplers
    }

    /// Returns what is said of the call where it is one of several that a question may belong to.
    pub(super) fn concerned(&self) -> Option<ConcernedCall> {
        let agent = self.asker.as_ref().and_then(|asker| asker.agent().cloned());
        Some(ConcernedCall { tool: self.tool.clone()?, agent })
    }

    pub(super) fn elicitor(&self) -> Option<Arc<dyn Elicitor>> {
        self.asker.clone().map(|asker| -> Arc<dyn Elicitor> { asker })
    }

    pub(super) fn sampling(&self) -> Option<ForCall> {
        self.sampling.clone()
    }

    /// Lets the call's own time stand still as well, for as long as what is returned lives.
    pub(super) fn pause(&self) -> Option<Pause> {
        self.asker.as_ref().map(|asker| asker.pause())
    }

    /// Says that a question to a person waits, for as long as what is returned lives.
    pub(super) fn asks(self: Arc<Self>) -> Asking {
        let pause = self.asking.begin();
        self.sign_of_life.notify_one();
        Asking { call: self, pause: Some(pause) }
    }

    /// Tells whether a question to a person waits. Time stands still for the call meanwhile.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.is_on()
    }

    /// Returns for how long questions to a person have waited, with those that wait now.
    pub(super) fn time_asking(&self) -> Duration {
        self.asking.spent_so_far()
    }

    /// Waits for progress, or for a question to begin or end.
    pub(super) async fn sign_of_life(&self) {
        self.sign_of_life.notified().await;
    }

    /// Says which task the call is.
    pub(super) fn is_task(&self, task: &str) {
        // A call is one task only.
        drop(self.task.set(task.to_owned()));
    }

    /// Waits until the server says that the task has come on.
    pub(super) async fn task_came_on(&self) {
        self.task_came_on.notified().await;
    }

    /// Says what the call is known by to the server, beside what it was known by before.
    pub(super) fn is_known_by(&self, id: RequestId, token: ProgressToken) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).push((id, token));
    }
}

impl Enrolled {
    pub(super) fn call(&self) -> &Arc<CallUnderWay> {
        &self.call
    }
}

impl Drop for Enrolled {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.calls.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        }
    }
}

/// A question to a person that waits for its answer.
#[derive(Debug)]
pub(super) struct Asking {
    call: Arc<CallUnderWay>,
    pause: Option<Pause>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        // Whoever hears of it is to find that it is over.
        drop(self.pause.take());
        self.call.sign_of_life.notify_one();
    }
}
