//! The one pipeline: look up → validate → authorise → limit → run → record.
//!
//! Every call of every tool passes through here, whoever makes it. Whatever happens on the way (no such
//! tool, wrong arguments, no permission, no time, a panic, a dropped future), the call is answered by
//! exactly one [`ToolResult`], and the stream holds exactly one end for its `requested` event.
//!
//! The pipeline has two halves, [`prepare`](ToolExecutor::prepare) and [`run`](ToolExecutor::run). What
//! lies between them may take days: a call that somebody has to be asked about waits there, without a
//! permit and without a lock.

mod absent;
mod ask;
mod batch;
mod end;
mod entered;
mod hooks;
mod inquire;
mod limits;
mod prepare;
mod run;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use convoke_core::policy::RuleSpec;
use convoke_core::{ToolCall, ToolResult};
use tokio::sync::watch;

use crate::approve::{Approver, NobodyToAsk};
use crate::artifact::{ArtifactStore, NoArtifacts};
use crate::authorize::{Authorizer, KindAuthorizer, Narrowed};
use crate::context::ToolContext;
use crate::hook::Hooks;
use crate::locks::PathLocks;
use crate::record::{NullSink, Recorder};
use crate::turns::Turns;
use crate::view::ToolView;

pub use ask::UNANSWERED_IN_TIME;
pub(crate) use end::for_event;
pub(crate) use entered::Entered;
pub use limits::Limits;
pub use prepare::{Decided, PreparedCall, recorded_name};

/// Runs the calls of one run. Cheap to clone; clones share permits and locks.
#[derive(Clone)]
pub struct ToolExecutor(Arc<Parts>);

struct Parts {
    view: ToolView,
    context: ToolContext,
    authorizer: Arc<dyn Authorizer>,
    approver: Arc<dyn Approver>,
    granted: Grants,
    hooks: Hooks,
    recorder: Recorder,
    artifacts: Arc<dyn ArtifactStore>,
    limits: Limits,
    turns: Turns,
    locks: PathLocks,
    entered: Arc<Entered>,
}

/// What people allowed for the rest of a run and of all runs below it. Cheap to clone; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Grants(Arc<watch::Sender<Vec<RuleSpec>>>);

impl Grants {
    /// Starts with what was allowed before.
    pub fn new(rules: Vec<RuleSpec>) -> Self {
        Self(Arc::new(watch::Sender::new(rules)))
    }
}

/// Wishes for one call.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// How long it may take; goes before every other setting.
    pub timeout: Option<Duration>,
}

impl CallOptions {
    /// Gives the call this long.
    pub const fn timeout(timeout: Duration) -> Self {
        Self { timeout: Some(timeout) }
    }
}

impl ToolExecutor {
    /// Starts an executor for the tools of a view, with the smallest rights: what only looks may run
    /// inside the context's roots, and nobody can be asked about the rest.
    pub fn builder(view: ToolView, context: ToolContext) -> ExecutorBuilder {
        let recorder = Recorder::new("run", Arc::new(NullSink), Arc::clone(context.clock()));
        ExecutorBuilder {
            view,
            context,
            recorder,
            authorizer: Arc::new(KindAuthorizer::default()),
            approver: Arc::new(NobodyToAsk),
            granted: Grants::default(),
            hooks: Hooks::default(),
            artifacts: Arc::new(NoArtifacts),
            limits: Limits::default(),
            turns: None,
            locks: PathLocks::default(),
        }
    }

    /// Runs one call from beginning to end, asking where somebody has to be asked.
    pub async fn execute(&self, call: ToolCall) -> ToolResult {
        self.execute_with(call, CallOptions::default()).await
    }

    /// Runs one call with wishes of its own.
    pub async fn execute_with(&self, call: ToolCall, options: CallOptions) -> ToolResult {
        match self.prepare(call, options).await {
            Decided::Answered(result) | Decided::Deferred(result) => *result,
            Decided::Ready(prepared) => self.run(prepared).await,
            Decided::Ask(prepared) => match Box::pin(self.ask(prepared)).await {
                Ok(prepared) => self.run(prepared).await,
                Err(result) => *result,
            },
        }
    }

    /// Returns who has a say.
    pub fn hooks(&self) -> &Hooks {
        &self.0.hooks
    }

    /// Returns the tools it runs.
    pub fn view(&self) -> &ToolView {
        &self.0.view
    }

    /// Returns what its calls may use.
    pub fn context(&self) -> &ToolContext {
        &self.0.context
    }

    /// Returns where its events go.
    pub fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }
}

impl fmt::Debug for ToolExecutor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ToolExecutor").field("view", &self.0.view).finish_non_exhaustive()
    }
}

/// Makes a [`ToolExecutor`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ExecutorBuilder {
    view: ToolView,
    context: ToolContext,
    authorizer: Arc<dyn Authorizer>,
    approver: Arc<dyn Approver>,
    granted: Grants,
    hooks: Hooks,
    recorder: Recorder,
    artifacts: Arc<dyn ArtifactStore>,
    limits: Limits,
    turns: Option<Turns>,
    locks: PathLocks,
}

impl ExecutorBuilder {
    /// Runs the calls in this context.
    pub fn context(mut self, context: ToolContext) -> Self {
        self.context = context;
        self
    }

    /// Runs the tools of this view.
    pub fn view(mut self, view: ToolView) -> Self {
        self.view = view;
        self
    }

    /// Asks this for permission.
    pub fn authorizer(mut self, authorizer: impl Authorizer + 'static) -> Self {
        self.authorizer = Arc::new(authorizer);
        self
    }

    /// Also asks this for permission: the stricter of both answers counts.
    pub fn narrowed_by(mut self, own: Arc<dyn Authorizer>) -> Self {
        let caller = self.authorizer;
        self.authorizer = Arc::new(Narrowed { caller, own });
        self
    }

    /// Returns what is asked for permission.
    pub const fn permission(&self) -> &Arc<dyn Authorizer> {
        &self.authorizer
    }

    /// Returns the tools it runs.
    pub const fn shown(&self) -> &ToolView {
        &self.view
    }

    /// Returns the locks of its paths.
    pub const fn path_locks(&self) -> &PathLocks {
        &self.locks
    }

    /// Returns what its calls may use.
    pub const fn used(&self) -> &ToolContext {
        &self.context
    }

    /// Asks people through this.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Arc::new(approver);
        self
    }

    /// Asks people through what is made of the approver it has.
    pub fn asking_through<A: Approver + 'static>(
        mut self,
        through: impl FnOnce(Arc<dyn Approver>) -> A,
    ) -> Self {
        self.approver = Arc::new(through(self.approver));
        self
    }

    /// Keeps what people allow for the rest of the run with all who share this.
    pub fn granted(mut self, granted: Grants) -> Self {
        self.granted = granted;
        self
    }

    /// Lets these have a say.
    pub fn hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// Records events here.
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = recorder;
        self
    }

    /// Keeps whole outputs here.
    pub fn artifacts(mut self, artifacts: impl ArtifactStore + 'static) -> Self {
        self.artifacts = Arc::new(artifacts);
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Shares turns with other executors, in place of those that the limits give this one.
    pub fn turns(mut self, turns: Turns) -> Self {
        self.turns = Some(turns);
        self
    }

    /// Shares the path locks of a tree of runs.
    pub fn locks(mut self, locks: PathLocks) -> Self {
        self.locks = locks;
        self
    }

    /// Makes the executor.
    pub fn build(self) -> ToolExecutor {
        ToolExecutor(Arc::new(Parts {
            turns: self.turns.unwrap_or_else(|| Turns::new(self.limits.max_concurrent)),
            view: self.view,
            context: self.context,
            authorizer: self.authorizer,
            approver: self.approver,
            granted: self.granted,
            hooks: self.hooks,
            recorder: self.recorder,
            artifacts: self.artifacts,
            limits: self.limits,
            locks: self.locks,
            entered: Arc::default(),
        }))
    }
}
