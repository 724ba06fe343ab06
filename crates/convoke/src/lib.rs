//! Convoke, an agent runtime: tools, subagents, MCP servers and commands behind one contract.
//!
//! This crate is the facade. It turns what a user wrote into a [`config::Config`] and wires the
//! other crates together in a [`Runtime`]; it holds no runtime logic of its own, and it never looks
//! at the process environment or the home directory: both come in from outside.
//!
//! ```
//! use convoke::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let project = tempfile::tempdir()?;
//! # let project = project.path();
//! let runtime = Runtime::builder(project).build()?;
//! let executor = runtime.executor().build();
//! let result = executor.execute(ToolCall::new("c1", "ls", json!({}))).await;
//! assert_eq!(result.text(), "(empty)");
//! # Ok(())
//! # }
//! ```

mod authorize;
pub mod config;
mod hooks;
mod later;
mod masked;
pub mod models;
mod notes;
mod origin;
mod programs;
mod protect;
mod runtime;
pub mod workspace;
mod written;

pub use authorize::PolicyAuthorizer;
pub use convoke_agent as agent;
pub use convoke_builtin as builtin;
pub use convoke_core as core;
pub use convoke_journal as journal;
pub use convoke_macros::tool;
pub use convoke_mcp as mcp;
pub use convoke_model as model;
pub use convoke_sandbox as sandbox;
pub use convoke_tool as tools;
#[doc(hidden)]
pub use convoke_tool::__private;
pub use hooks::HookError;
pub use masked::masked;
pub use origin::{Origin, OriginAgent, OriginWorkspace, ResumeDifference};
pub use programs::Programs;
pub use runtime::{
    AgentCallError, AgentOff, CutLimit, KnownAgent, ListedServer, LoginError, McpPlaces,
    McpServers, ModelSetupError, NotOffered, PROJECT_SERVERS, Refusal, Remark, Runtime,
    RuntimeBuilder, RuntimeError, Serving, Standing, replaces_shipped,
};
pub use workspace::{Workspace, WorkspaceError, Workspaces};
pub use written::find_program;

/// What most programs need.
pub mod prelude {
    pub use crate::config::Config;
    pub use crate::tool;
    pub use crate::{Runtime, RuntimeBuilder, RuntimeError};
    pub use async_trait::async_trait;
    pub use convoke_agent::{
        AgentDefinition, AgentExecutor, AgentReport, MainAgent, OutputSpec, RunHandle, RunReport,
        Running, Task,
    };
    pub use convoke_core::{
        Budget, Category, Cause, ErrorKind, Event, EventBody, Kind, Mode, Outcome, Permission,
        Repeat, Status, ToolCall, ToolError, ToolResult, ToolSpec,
    };
    pub use convoke_model::{Model, ScriptedModel, Turn};
    pub use convoke_tool::{
        CallOptions, FunctionTool, Invocation, Rendered, Roots, Selection, Tool, ToolContext,
        ToolExecutor, ToolOutput, ToolRegistry, ToolView,
    };
    pub use futures_util::StreamExt;
    pub use serde_json::json;
}

/// The README's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
