//! What tests of tools need: a place to work in, a pipeline that allows everything, and a suite that
//! finds out whether a tool keeps what every tool promises.
//!
//! This module owns stand-ins and checks; it decides nothing that happens outside tests. It is behind
//! the feature `testing` and is meant for whoever writes a tool, inside this workspace or not. Nothing
//! here panics but [`Report::assert`], which is made for it.
//!
//! ```
//! use convoke_core::Kind;
//! use convoke_tool::testing::{Conformance, TempWorkspace};
//! use convoke_tool::{FunctionTool, ToolContext, ToolError};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Count {
//!     /// The file.
//!     path: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let size_of = FunctionTool::new(
//!     "size_of",
//!     "Tells how many bytes a file has.",
//!     async |count: Count, context: ToolContext| {
//!         Ok::<u64, ToolError>(context.locate(&count.path)?.metadata()?.len())
//!     },
//! )
//! .kind(Kind::Read)
//! .reads("path");
//!
//! let workspace = TempWorkspace::new()?;
//! workspace.write("a.txt", "hello")?;
//! let report = Conformance::new(size_of)
//!     .valid(json!({ "path": "a.txt" }))
//!     .in_context(workspace.context())
//!     .run()
//!     .await;
//! report.assert();
//! # Ok(())
//! # }
//! ```

mod conformance;
mod events;
mod workspace;

use std::io;
use std::sync::Arc;

use crate::authorize::{Authorizer, Decision, Request};
use crate::context::ToolContext;
use crate::executor::{Limits, ToolExecutor};
use crate::registry::{IntoTool, RegistryError, ToolRegistry};
use crate::view::ToolView;

pub use conformance::{Check, Conformance, Finding, Report};
pub use events::CollectedEvents;
pub use workspace::TempWorkspace;

/// Allows every call. What lies outside the context's roots is refused all the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Authorizer for AllowAll {
    fn decide(&self, _: &Request<'_>) -> Decision {
        Decision::Allow { rule: "everything is allowed in tests".to_owned() }
    }
}

/// Makes a context with an empty temporary directory as its only root, which goes when the last clone
/// of the context does, and a clock that stands still. It starts no processes.
pub fn context() -> io::Result<ToolContext> {
    Ok(TempWorkspace::new()?.context())
}

/// Makes a pipeline for one tool that allows everything and keeps its events in memory.
pub fn executor(
    tool: impl IntoTool,
    context: ToolContext,
) -> Result<(ToolExecutor, CollectedEvents), RegistryError> {
    executor_with(tool.into_tool(), context, Limits::default())
}

fn executor_with(
    tool: Arc<dyn crate::Tool>,
    context: ToolContext,
    limits: Limits,
) -> Result<(ToolExecutor, CollectedEvents), RegistryError> {
    let registry = ToolRegistry::new();
    registry.register(tool)?;
    let events = CollectedEvents::default();
    let recorder = events.recorder(Arc::clone(context.clock()));
    let executor = ToolExecutor::builder(ToolView::of(registry), context)
        .authorizer(AllowAll)
        .recorder(recorder)
        .limits(limits)
        .build();
    Ok((executor, events))
}
