//! The tool through which others are called. It has no body: a call of it is a call of the tool it names,
//! from the first step of the pipeline on.

use async_trait::async_trait;
use convoke_core::{Kind, ToolError, ToolSpec, USE_TOOL};
use serde_json::{Value, json};

use super::TOOL_SEARCH;
use crate::context::ToolContext;
use crate::tool::{Invocation, Tool, ToolOutput};

/// Calls what a search found.
#[derive(Debug)]
pub struct UseTool(ToolSpec);

impl UseTool {
    /// Makes the tool.
    pub fn new() -> Self {
        let description = include_str!("../../prompts/use_tool.md").trim_end();
        let mut spec = ToolSpec::new(USE_TOOL, description, Kind::Think);
        spec.category = convoke_core::Category::System;
        spec.parameters = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "name": { "type": "string", "description": "The name of the tool." },
                "args": { "type": "object", "description": "Its arguments, as its parameters say." },
            },
            "required": ["name"],
        })
        .into();
        Self(spec)
    }
}

impl Default for UseTool {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for UseTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn prepare(&self, _: Value) -> Result<Box<dyn Invocation>, ToolError> {
        Ok(Box::new(Unnamed))
    }
}

/// A call that names no tool that could be called in its place.
struct Unnamed;

#[async_trait]
impl Invocation for Unnamed {
    async fn run(self: Box<Self>, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Err(ToolError::validation([format!(
            "`name` has to be the name of another tool, and `args` an object; `{TOOL_SEARCH}` finds tools"
        )]))
    }
}
