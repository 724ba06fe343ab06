//! What `#[tool]` writes, compiled and run through the pipeline.

mod arguments;
mod calls;
mod spec;

use convoke_core::{ToolCall, ToolResult};
use convoke_tool::{Tool, testing};
use serde_json::Value;

/// Runs one call of one tool where everything is allowed.
#[expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]
async fn call(tool: impl Tool, arguments: Value) -> ToolResult {
    let name = tool.spec().name.clone();
    let context = testing::context().unwrap();
    let (executor, _events) = testing::executor(tool, context).unwrap();
    executor.execute(ToolCall::new("c1", name, arguments)).await
}
