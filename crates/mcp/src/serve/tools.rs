//! The tools of a view as an offer: every served call passes through the pipeline all calls pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use convoke_core::{CallId, ToolCall, ToolError, ToolResult, ToolSpec};
use convoke_tool::{ExecutorBuilder, Recorder, Tool, ToolExecutor, Turns};
use serde_json::Value;
use tokio::sync::watch;

use super::offer::{CallHandle, Offer};
use super::watch::CallWatch;

/// How many calls run at once where nothing else is said.
const AT_ONCE: usize = 8;

/// Offers the tools of a view.
///
/// Calls are looked up, validated, authorised, limited and run like everywhere else, and recorded where the
/// builder's recorder writes. A call that a person has to be asked about waits without a turn; where nobody
/// can be asked, it is denied. When the tools of the view come and go, clients are told.
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
    calls: AtomicU64,
}

impl ToolOffer {
    /// Offers the tools of the builder's view. Its recorder has to write into `watch`, or clients hear
    /// nothing of a call until it ends.
    pub fn new(executors: ExecutorBuilder, watch: Arc<CallWatch>) -> Self {
        Self { executors, watch, calls: AtomicU64::new(0) }.at_once(AT_ONCE)
    }

    /// Lets so many calls run at once. The others wait. None is alone: each may be of another client.
    #[must_use]
    pub fn at_once(mut self, calls: usize) -> Self {
        self.executors = self.executors.turns(Turns::of_strangers(calls));
        self
    }

    /// Returns an offer of the same tools, with the same turns, that is recorded elsewhere.
    #[must_use]
    pub fn recorded_by(&self, recorder: Recorder, watch: Arc<CallWatch>) -> Self {
        let executors = self.executors.clone().recorder(recorder);
        Self { executors, watch, calls: AtomicU64::new(0) }
    }

    /// Returns what its calls are made with.
    pub const fn executors(&self) -> &ExecutorBuilder {
        &self.executors
    }

    fn next_call(&self) -> CallId {
        CallId::new(format!("served-{}", self.calls.fetch_add(1, Ordering::Relaxed) + 1))
    }

    /// Makes an executor whose calls stop with this one's client. All take turns with one another.
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
        self.executors.shown().registry().changes()
    }

    async fn call(&self, name: &str, arguments: Value, handle: CallHandle) -> ToolResult {
        let call = self.next_call();
        let _watched = self.watch.watch(call.clone(), handle.progress.clone());
        self.executor(&handle).execute(ToolCall::new(call, name, arguments)).await
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
