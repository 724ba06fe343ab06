//! A run under way.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use convoke_core::{
    Cause, Event, ExitCode, Message, Millis, Outcome, Run, RunId, TaskContext, Timestamp, Usage,
    WorkspaceReport,
};
use convoke_tool::{EventSink, RecordError, Recorder, Synced};
use futures_util::Stream;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::executor::Task;
use crate::keeper::Place;
use crate::resume::Paused;
use crate::session::Session;
use crate::state::RunState;
use crate::tree::Tree;

/// How many messages of the user wait for the next turn.
const MAX_MESSAGES: usize = 64;
/// How many events wait for a reader before deltas and progress are left out for it.
const MAX_WAITING: usize = 4_096;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunReport {
    /// The run.
    pub run: RunId,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Its answer: a text, or a value of the shape that was asked for. One that came from a last chance
    /// is here as well; the outcome says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// What it used, its children included.
    pub usage: Usage,
    /// How many turns it took.
    pub turns: u32,
    /// How many calls of tools began.
    pub tool_calls: u32,
    /// How many calls of which tools were refused.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, u32>,
    /// How long it took, waiting for people included.
    pub duration_ms: Millis,
    /// What was done and learned. The files are those of its children as well, but for what they changed in
    /// workspaces of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskContext>,
    /// What it changed in its own workspace, where it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceReport>,
}

impl RunReport {
    pub(crate) fn new(run: &Run, outcome: Outcome, began: Timestamp, ended: Timestamp) -> Self {
        let millis = u64::try_from(ended.as_millis() - began.as_millis()).unwrap_or_default();
        let answered = outcome.recovered || outcome.cause == Cause::Goal;
        // A turn that began without anything left to ask the model with is none.
        let is_short = matches!(outcome.cause, Cause::MaxTokens | Cause::MaxCost);
        let never_asked = is_short && run.spent().is_empty();
        Self {
            run: run.id().clone(),
            answer: run.answer().filter(|_| answered).cloned(),
            outcome,
            usage: *run.spent(),
            turns: if never_asked { 0 } else { run.turns() },
            tool_calls: run.tool_calls(),
            refused: run.refused().clone(),
            duration_ms: Millis::new(Duration::from_millis(millis)),
            task: run.task().cloned(),
            workspace: None,
        }
    }

    /// Makes the report of a run that ended earlier.
    pub(crate) fn of(state: &RunState) -> Self {
        let (run, now) = (state.lock(), Timestamp::default());
        let outcome = run.outcome().cloned().unwrap_or_else(|| Cause::Error.into());
        Self { workspace: state.changes(), ..Self::new(&run, outcome, now, now) }
    }

    /// Returns the answer as text: a text as it is, any other value as JSON.
    pub fn text(&self) -> Option<String> {
        self.answer.as_ref().map(|answer| match answer {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        })
    }

    /// Returns the exit code of a command that ran it.
    pub fn exit_code(&self) -> ExitCode {
        self.outcome.cause.exit_code()
    }
}

/// A run under way: a stream of its events, which drives it. Polling goes on until the run has ended and
/// all events were handed out; then there is a report. Dropping it stops everything it started.
pub struct Running {
    driver: Option<Pin<Box<dyn Future<Output = RunReport> + Send>>>,
    events: Reader,
    report: Option<RunReport>,
    handle: RunHandle,
    rest: Rest,
}

/// What of a run stays when nobody drives it any more.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) state: Arc<RunState>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) place: Place,
    pub(crate) recorder: Recorder,
    pub(crate) origin: Value,
}

impl Running {
    pub(crate) fn new(
        driver: impl Future<Output = RunReport> + Send + 'static,
        events: Reader,
        handle: RunHandle,
        rest: Rest,
    ) -> Self {
        Self { driver: Some(Box::pin(driver)), events, report: None, handle, rest }
    }

    /// Returns the id of the run.
    pub fn id(&self) -> &RunId {
        self.rest.recorder.run()
    }

    /// Stops driving the run, and returns it as it is, so that it can be taken up again.
    pub fn pause(self) -> Paused {
        let Self { driver, rest: Rest { state, tree, place, recorder, origin }, .. } = self;
        drop(driver);
        let seen = recorder.secrets().seen();
        let family = tree.at_rest(&state.lock());
        let (seq, last, session) = (recorder.seq(), recorder.now(), Session::default());
        Paused { state, family, place, seq, last, origin, seen, session }
    }

    /// Returns a handle to talk to the run while it works.
    pub fn handle(&self) -> RunHandle {
        self.handle.clone()
    }

    /// Returns what came of the run, once all its events were read.
    pub const fn report(&self) -> Option<&RunReport> {
        self.report.as_ref()
    }

    /// Runs to the end without looking at events.
    pub async fn finish(mut self) -> RunReport {
        self.events.receiver.close();
        if let Some(report) = self.report {
            return report;
        }
        match self.driver.take() {
            Some(driver) => driver.await,
            // There is a report as soon as there is no driver.
            None => std::future::pending().await,
        }
    }
}

impl Stream for Running {
    type Item = Arc<Event>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Arc<Event>>> {
        if let Poll::Ready(Some(event)) = self.events.poll(context) {
            return Poll::Ready(Some(event));
        }
        if let Some(driver) = &mut self.driver
            && let Poll::Ready(report) = driver.as_mut().poll(context)
        {
            self.report = Some(report);
            self.driver = None;
            self.events.receiver.close();
        }
        self.events.poll(context)
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Running").field("report", &self.report).finish_non_exhaustive()
    }
}

/// A message that nobody will hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotHeard {
    /// The run is over.
    #[error("the run is over; start another one")]
    Ended,
    /// Too much was said since the last turn.
    #[error("{MAX_MESSAGES} messages wait for the next turn already; say it later")]
    TooMany,
}

/// What the user says, on its way to the run.
#[derive(Debug, Default)]
struct Inbox {
    waiting: Vec<Message>,
    is_closed: bool,
}

/// Talks to a run while it works. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RunHandle {
    inbox: Arc<Mutex<Inbox>>,
    said: Arc<Notify>,
    stop: CancellationToken,
    cause: StopCause,
}

/// Why a run is to stop, as far as anybody said: to itself, or to the run that called it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopCause {
    own: Arc<Mutex<Option<Cause>>>,
    caller: Option<Arc<Self>>,
}

impl StopCause {
    /// Why those below are to stop: for the reason their caller is, unless there is one of their own.
    pub(crate) fn below(caller: Self) -> Self {
        Self { caller: Some(Arc::new(caller)), ..Self::default() }
    }

    pub(crate) fn set(&self, cause: Cause) {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
    }

    fn get(&self) -> Option<Cause> {
        let own = *self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.or_else(|| self.caller.as_ref().and_then(|caller| caller.get()))
    }
}

impl RunHandle {
    /// Says something; it is taken in at the next turn, also by a run that was about to end. A run that is
    /// being stopped takes it in as well, and does not answer any more.
    pub fn say(&self, more: impl Into<Task>) -> Result<(), NotHeard> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if inbox.is_closed {
            return Err(NotHeard::Ended);
        }
        if inbox.waiting.len() >= MAX_MESSAGES {
            return Err(NotHeard::TooMany);
        }
        inbox.waiting.push(more.into().into_message());
        self.said.notify_one();
        Ok(())
    }

    /// Stops the run: what is under way is told to stop, every call is answered, and the run ends.
    pub fn cancel(&self) {
        self.cancel_because(Cause::Interrupted);
    }

    /// Stops the run, and says why: `Interrupted` or `Terminated`.
    pub fn cancel_because(&self, cause: Cause) {
        self.cause.set(cause);
        self.stop.cancel();
    }
}

/// The run's end of a [`RunHandle`].
#[derive(Debug)]
pub(crate) struct Control {
    inbox: Arc<Mutex<Inbox>>,
    said: Arc<Notify>,
    stop: CancellationToken,
    cause: StopCause,
}

impl Control {
    /// Makes both ends. The run also stops when `outer` does.
    pub(crate) fn new(outer: &CancellationToken) -> (RunHandle, Self) {
        Self::with(outer, StopCause::default())
    }

    /// Makes both ends for a run that another one called. It also stops when its caller does, and for the
    /// same reason.
    pub(crate) fn below((outer, caller): (&CancellationToken, StopCause)) -> (RunHandle, Self) {
        Self::with(outer, StopCause::below(caller))
    }

    fn with(outer: &CancellationToken, cause: StopCause) -> (RunHandle, Self) {
        let stop = outer.child_token();
        let (inbox, said): (Arc<Mutex<Inbox>>, Arc<Notify>) = Default::default();
        let handle = RunHandle {
            inbox: Arc::clone(&inbox),
            said: Arc::clone(&said),
            stop: stop.clone(),
            cause: cause.clone(),
        };
        (handle, Self { inbox, said, stop, cause })
    }

    /// Returns why it is to stop, for the runs that it calls.
    pub(crate) fn cause(&self) -> StopCause {
        self.cause.clone()
    }

    /// Returns what stops it.
    pub(crate) const fn token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Waits until something was said.
    pub(crate) async fn said(&self) {
        while self.inbox().waiting.is_empty() {
            self.said.notified().await;
        }
    }

    /// Returns what was said since it was last asked.
    pub(crate) fn messages(&self) -> Vec<Message> {
        std::mem::take(&mut self.inbox().waiting)
    }

    /// Stops listening, unless something was said that has not been taken in; tells whether it did.
    pub(crate) fn stop_listening(&self) -> bool {
        let mut inbox = self.inbox();
        inbox.is_closed = inbox.waiting.is_empty();
        inbox.is_closed
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why the run is to stop, if it is.
    pub(crate) fn is_cancelled(&self) -> Option<Cause> {
        self.stop.is_cancelled().then(|| self.why())
    }

    /// Waits until the run is to stop.
    pub(crate) async fn cancelled(&self) -> Cause {
        self.stop.cancelled().await;
        self.why()
    }

    fn why(&self) -> Cause {
        self.cause.get().unwrap_or(Cause::Interrupted)
    }
}

/// Also a run that was dropped, or could not be recorded, does not listen any more.
impl Drop for Control {
    fn drop(&mut self) {
        self.inbox().is_closed = true;
    }
}

/// Makes the two ends of a stream of events: one for the recorder, one for the reader.
pub(crate) fn shown(kept: Arc<dyn EventSink>) -> (Shown, Reader) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let shown = Shown { kept, sender, waiting: Arc::clone(&waiting) };
    (shown, Reader { receiver, waiting })
}

/// Keeps events with somebody, and shows them to whoever reads the stream.
#[derive(Debug)]
pub(crate) struct Shown {
    kept: Arc<dyn EventSink>,
    sender: mpsc::UnboundedSender<Arc<Event>>,
    waiting: Arc<AtomicUsize>,
}

impl EventSink for Shown {
    fn append(&self, event: &Arc<Event>) -> Result<(), RecordError> {
        self.kept.append(event)?;
        self.show(event);
        Ok(())
    }

    fn sync(&self) -> Synced {
        self.kept.sync()
    }

    /// Who is far behind misses what would not be kept anyway.
    fn stream(&self, event: &Arc<Event>) {
        self.kept.stream(event);
        if self.waiting.load(Ordering::Relaxed) < MAX_WAITING {
            self.show(event);
        }
    }
}

impl Shown {
    /// Nobody has to read.
    fn show(&self, event: &Arc<Event>) {
        if self.sender.send(Arc::clone(event)).is_ok() {
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The reader's end of a stream of events.
#[derive(Debug)]
pub(crate) struct Reader {
    receiver: mpsc::UnboundedReceiver<Arc<Event>>,
    waiting: Arc<AtomicUsize>,
}

impl Reader {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Arc<Event>>> {
        let polled = self.receiver.poll_recv(context);
        if let Poll::Ready(Some(_)) = polled {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_learns_whether_it_will_be_heard() {
        let (handle, control) = Control::new(&CancellationToken::new());
        assert_eq!(handle.say("one"), Ok(()));
        assert!(!control.stop_listening(), "something was said in the last moment");
        assert_eq!(control.messages().len(), 1);
        for _ in 0..MAX_MESSAGES {
            assert_eq!(handle.say("more"), Ok(()));
        }
        assert_eq!(handle.say("too much"), Err(NotHeard::TooMany));
        assert_eq!(control.messages().len(), MAX_MESSAGES);
        assert!(control.stop_listening());
        assert_eq!(handle.say("late"), Err(NotHeard::Ended));
    }

    #[test]
    fn a_run_that_was_dropped_hears_nothing() {
        let (handle, control) = Control::new(&CancellationToken::new());
        drop(control);
        assert_eq!(handle.say("hello?"), Err(NotHeard::Ended));
    }
}
