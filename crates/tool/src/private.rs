//! What the code that `#[tool]` writes refers to. Not for use by hand: it changes without notice.
//!
//! The attribute names everything through here, so whoever uses it needs this crate, or one that
//! re-exports this module, and nothing else.

pub use convoke_core::{Category, Concurrency, Kind, Repeat, ToolError};
pub use {schemars, serde};

pub use crate::context::ToolContext;
pub use crate::function::FunctionTool;
pub use crate::tool::Tool;
