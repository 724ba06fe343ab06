//! The tool contract of Convoke, and the one pipeline every call passes through.
//!
//! A [`Tool`] is a spec and a body. A [`ToolRegistry`] holds all of them, a [`ToolView`] shows a run the
//! ones it may call, and a [`ToolExecutor`] carries each call through look up → validate → authorise →
//! limit → run → record. Function tools, commands, MCP tools and agents are all the same here; this
//! crate knows nothing of models, agents or MCP.
//!
//! What a tool needs from the world comes through its [`ToolContext`]; what the pipeline needs from
//! others are small traits: [`Authorizer`], [`Approver`], [`Spawner`], [`Clock`], [`EventSink`],
//! [`ArtifactStore`]. Each has the most careful default there is.
//!
//! ```
//! use convoke_core::{Kind, ToolCall};
//! use convoke_tool::{FunctionTool, ToolContext, ToolExecutor, ToolRegistry, ToolView};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet {
//!     name: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), convoke_tool::RegistryError> {
//! let registry = ToolRegistry::new();
//! registry.register(
//!     FunctionTool::new("greet", "Greets somebody.", async |who: Greet, _: ToolContext| {
//!         Ok::<_, String>(format!("Hello, {}!", who.name))
//!     })
//!     .kind(Kind::Think),
//! )?;
//! let context = ToolContext::builder("task-1").build();
//! let executor = ToolExecutor::builder(ToolView::of(registry), context).build();
//!
//! let result = executor.execute(ToolCall::new("c1", "greet", json!({ "name": "Ada" }))).await;
//! assert_eq!(result.value(), Some(&json!("Hello, Ada!")));
//!
//! let result = executor.execute(ToolCall::new("c2", "great", json!({}))).await;
//! assert_eq!(result.text(), "Error (not_found): Tool \"great\" not found; did you mean `greet`?");
//! # Ok(())
//! # }
//! ```

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod approve;
mod artifact;
mod authorize;
mod cache;
pub mod catalogue;
mod clock;
mod command;
mod context;
mod environment;
mod executor;
mod file_error;
pub mod files;
mod form;
mod function;
mod hook;
mod inquire;
mod interlude;
mod locks;
mod pattern;
pub mod process;
mod progress;
mod reached;
mod real;
mod record;
mod registry;
mod roots;
mod schedule;
pub mod schema;
mod spawn;
mod task;
#[cfg(feature = "testing")]
pub mod testing;

mod tool;
mod truncate;
mod turns;
mod validate;
mod view;

pub use approve::{
    Answer, Approver, AskedBefore, Consent, NobodyToAsk, Objection, Question, Unanswered, ask_with,
};
pub use artifact::{ArtifactStore, NoArtifacts};
pub use authorize::{Authorizer, Decision, KindAuthorizer, Request};
pub use cache::{ReadCache, Stamp};
pub use clock::{Clock, ManualClock, SteadyClock, SystemClock};
pub use command::CommandTool;
pub use context::{ContextBuilder, Deferral, ToolContext};
pub use convoke_core::{Permission, ToolError};
pub use environment::{SessionEnvironment, Variable, looks_like_credential};
pub use executor::recorded_name;
pub use executor::{
    CallOptions, Decided, ExecutorBuilder, Grants, Limits, PreparedCall, ToolExecutor,
    UNANSWERED_IN_TIME,
};
pub use file_error::file_error;
pub use form::{Choice, Field, FieldKind, Form};
pub use function::{FunctionTool, Rendered, Reply};
pub use hook::{FunctionHook, Hook, Hooks, Verdict};
pub use inquire::Inquiry;
pub use interlude::{Interlude, Pause, Pauses};
pub use locks::PathLocks;
pub use progress::{MAX_STREAMED_BYTES, ProgressSender};
pub use reached::ReachedLimit;
pub use real::RealPlaces;
pub use record::{EventSink, MemorySink, NullSink, Observer, RecordError, Recorder, Synced};
pub use registry::{CallStats, IntoTool, RegistryError, ToolRegistry, ToolStats};
pub use roots::{FinalLink, MissingParents, Place, RootError, Roots};
pub use spawn::{NoProcesses, Process, Program, Spawner, Streams, UnconfinedSpawner};
pub use tool::{Content, Invocation, Tool, ToolOutput};
pub use truncate::{cut_middle, floor_char_boundary};
pub use turns::Turns;
pub use validate::MAX_DEPTH;
pub use view::{Selection, Shown, ToolView, ViewError};
