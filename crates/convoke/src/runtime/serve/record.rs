//! Tools whose calls from outside are kept as runs: who called what, what allowed it, and what came of it.
//!
//! A run begins with its first call, so a server that nobody uses leaves nothing behind. It ends with the server,
//! when it has many calls, or when nothing can be recorded in it any more; then the next call begins another. If a
//! call cannot be recorded, it is not made.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use convoke_agent::{Journals, Keeper, Place, new_run_id};
use convoke_core::{
    Cause, Declaration, EventBody, Outcome, RunSettings, Secrets, ToolResult, ToolSpec, Usage,
};
use convoke_mcp::serve::{CallHandle, CallWatch, Offer, ToolOffer};
use convoke_tool::{ExecutorBuilder, NullSink, Recorder};
use serde_json::Value;
use tokio::sync::watch;

use crate::masked::masked;
use crate::origin::Origin;

/// How many calls one run has at most.
const MAX_CALLS: u64 = 5_000;

/// Tools whose calls are recorded, and whose answers hold no secrets.
#[derive(Debug)]
pub(super) struct RecordedTools {
    /// The tools, without a record.
    tools: ToolOffer,
    journals: Option<Journals>,
    origin: Origin,
    secrets: Secrets,
    current: Mutex<Option<Arc<ServedRun>>>,
}

impl RecordedTools {
    /// Serves the tools of a builder. Where there are no journals, nothing is kept.
    pub(super) fn new(
        executors: ExecutorBuilder,
        journals: Option<Journals>,
        origin: Origin,
        secrets: Secrets,
    ) -> Self {
        let tools = ToolOffer::new(executors, CallWatch::over(Arc::new(NullSink)));
        Self { tools, journals, origin, secrets, current: Mutex::default() }
    }

    /// Returns the run that the next call belongs to.
    async fn run(&self) -> Arc<ServedRun> {
        let (run, before) = self.next_run();
        if let Some(before) = before {
            ServedRun::leave(before).await;
        }
        run
    }

    /// Returns the run that the next call belongs to, and the one before it if that takes no more.
    fn next_run(&self) -> (Arc<ServedRun>, Option<Arc<ServedRun>>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let (run, before) = match current.take() {
            Some(run) if run.takes_more() => (run, None),
            before => (Arc::new(self.begin()), before),
        };
        run.calls.fetch_add(1, Ordering::Relaxed);
        *current = Some(Arc::clone(&run));
        (run, before)
    }

    fn begin(&self) -> ServedRun {
        let context = self.tools.executors().used();
        let (clock, task) = (Arc::clone(context.clock()), context.task().clone());
        let id = new_run_id(clock.now());
        let place = self.journals.as_ref().map_or_else(
            || Place::new(Arc::new(NullSink)),
            |journals| journals.keep(&id).unwrap_or_else(Place::refusing),
        );
        let watch = CallWatch::over(place.sink);
        let recorder = Recorder::new(id, watch.clone(), clock).hiding(self.secrets.clone());
        let tools = self.tools.tools();
        let names: Vec<&str> = tools.iter().map(|spec| spec.name.as_str()).collect();
        let declared: Vec<Declaration> = tools.iter().map(ToolSpec::declaration).collect();
        let started = EventBody::RunStarted {
            task,
            model: String::new(),
            prompt: format!("Calls from MCP clients, of {}", names.join(", ")),
            attachments: Vec::new(),
            history: Vec::new(),
            system: "".into(),
            tools: declared.into(),
            settings: RunSettings::default(),
            origin: Origin {
                tools: Some(names.into_iter().map(str::to_owned).collect()),
                served: true,
                ..self.origin.clone()
            }
            .to_json(),
        };
        // If it cannot be recorded, neither can a call, which says so.
        drop(recorder.record(None, started));
        let tools = self.tools.recorded_by(recorder.clone(), watch);
        ServedRun { tools, recorder, calls: AtomicU64::new(0) }
    }
}

#[async_trait]
impl Offer for RecordedTools {
    fn tools(&self) -> Vec<ToolSpec> {
        self.tools.tools()
    }

    fn tool(&self, name: &str) -> Option<ToolSpec> {
        self.tools.tool(name)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.tools.changes()
    }

    async fn call(&self, name: &str, arguments: Value, handle: CallHandle) -> ToolResult {
        let run = self.run().await;
        masked(run.tools.call(name, arguments, handle).await, &self.secrets)
    }

    async fn finish(&self) {
        let last = self.current.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(last) = last {
            ServedRun::leave(last).await;
        }
    }
}

/// A run that consists of calls from outside. It ends when the last of them has.
#[derive(Debug)]
struct ServedRun {
    tools: ToolOffer,
    recorder: Recorder,
    calls: AtomicU64,
}

impl ServedRun {
    /// Tells whether another call can be recorded in it. What was in the way of one that cannot, a full disk for
    /// instance, may not be in the way of the next.
    fn takes_more(&self) -> bool {
        self.calls.load(Ordering::Relaxed) < MAX_CALLS && self.recorder.check().is_ok()
    }

    /// Makes no more calls, and waits until what is recorded of it will survive the machine.
    async fn leave(run: Arc<Self>) {
        let recorder = run.recorder.clone();
        drop(run);
        // Nothing more is done that could depend on it.
        drop(recorder.sync().await);
    }
}

impl Drop for ServedRun {
    fn drop(&mut self) {
        let ended = EventBody::RunEnded {
            outcome: Outcome::from(Cause::Goal),
            answer: None,
            usage: Usage::default(),
        };
        // A record without its end is that of a server that was lost, which is near enough.
        drop(self.recorder.record(None, ended));
    }
}
