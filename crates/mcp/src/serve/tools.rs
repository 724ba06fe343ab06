//! The tools of a view as an offer: every served call passes through the pipeline all calls pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use convoke_core::{CallId, ToolCall, ToolError, ToolResult, ToolSpec};
use convoke_tool::{CallOptions, Decided, ExecutorBuilder, Tool, ToolExecutor};
use serde_json::Value;
use tokio::sync::watch;

use super::offer::{CallHandle, Offer};
use super::turns::Turns;
use super::watch::CallWatch;

/// How many calls run at once where nothing else is said.
const AT_ONCE: usize = 8;

/// Offers the tools of a view.
///
/// Calls are looked up, validated, authorised, limited, run and recorded like everywhere else. A call
/// that a person has to be asked about waits without a turn; where nobody can be asked, it is denied.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use convoke_mcp::serve::{CallWatch, Service, ToolOffer, serve_stdio};
/// use convoke_tool::{NullSink, Recorder, ToolContext, ToolExecutor, ToolRegistry, ToolView};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), convoke_mcp::serve::ServeError> {
/// let context = ToolContext::builder("served").build();
/// let watch = CallWatch::over(Arc::new(NullSink));
/// let recorder = Recorder::new("served", watch.clone(), Arc::clone(context.clock()));
/// let executors =
///     ToolExecutor::builder(ToolView::of(ToolRegistry::new()), context).recorder(recorder);
/// let offer = Arc::new(ToolOffer::new(executors, watch));
///
/// let service = Service::new("mine", "1.0.0", offer).instructions("What the tools are for.");
/// let (reader, writer) = (tokio::io::stdin(), tokio::io::stdout());
/// serve_stdio(service, reader, writer, Default::default()).await
/// # }
/// ```
#[derive(Debug)]
pub struct ToolOffer {
    executors: ExecutorBuilder,
    watch: Arc<CallWatch>,
    turns: Turns,
    changes: watch::Sender<u64>,
    calls: AtomicU64,
}

impl ToolOffer {
    /// Offers the tools of the builder's view. Its recorder has to write into `watch`, or clients hear
    /// nothing of a call until it ends.
    pub fn new(executors: ExecutorBuilder, watch: Arc<CallWatch>) -> Self {
        Self {
            executors,
            watch,
            turns: Turns::new(AT_ONCE),
            changes: watch::Sender::new(0),
            calls: AtomicU64::new(0),
        }
    }

    /// Lets so many calls run at once. The others wait.
    #[must_use]
    pub fn at_once(mut self, calls: usize) -> Self {
        self.turns = Turns::new(calls);
        self
    }

    /// Says that the tools of the view are others than before, so that clients ask for them again.
    pub fn refresh(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn next_call(&self) -> CallId {
        CallId::new(format!("served-{}", self.calls.fetch_add(1, Ordering::Relaxed) + 1))
    }

    /// Makes an executor whose calls stop with this one's client.
    fn executor(&self, handle: &CallHandle) -> ToolExecutor {
        let context = self.executors.used().for_run(handle.cancellation.clone());
        self.executors.clone().context(context).build()
    }
}

#[async_trait]
impl Offer for ToolOffer {
    fn tools(&self) -> Vec<ToolSpec> {
        self.executors.shown().list().iter().map(|tool| described(tool.as_ref())).collect()
    }

    fn tool(&self, name: &str) -> Option<ToolSpec> {
        self.executors.shown().get(name).map(|tool| described(tool.as_ref()))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn call(&self, name: &str, arguments: Value, handle: CallHandle) -> ToolResult {
        let call = self.next_call();
        let _watched = self.watch.watch(call.clone(), handle.progress.clone());
        let executor = self.executor(&handle);
        let tool = self.executors.shown().get(name);
        let call = ToolCall::new(call, name, arguments);
        let prepared = match executor.prepare(call, CallOptions::default()).await {
            Decided::Answered(result) => return *result,
            Decided::Ready(prepared) => prepared,
            Decided::Ask(prepared) => match Box::pin(executor.ask(prepared)).await {
                Ok(prepared) => prepared,
                Err(result) => return *result,
            },
        };
        // A call that is stopped while it waits goes on without a turn: it ends at once.
        let turn = tokio::select! {
            biased;
            () = handle.cancellation.cancelled() => None,
            turn = self.turns.take(tool.as_ref().map(|tool| tool.spec())) => Some(turn),
        };
        let result = executor.run(prepared).await;
        drop(turn);
        result
    }
}

/// Returns what clients are told: all of the schema, unless the tool tells models something else.
fn described(tool: &dyn Tool) -> ToolSpec {
    let mut spec = tool.spec().clone();
    let declared = tool.declaration();
    if declared != spec.declaration() {
        spec.description = declared.description;
        spec.parameters = declared.parameters;
    }
    spec
}

/// Returns the answer to a call that never reached the pipeline.
pub(super) fn unknown(name: &str, tools: &[ToolSpec]) -> ToolError {
    ToolError::unknown_tool(name, tools.iter().map(|spec| spec.name.as_str()))
}
