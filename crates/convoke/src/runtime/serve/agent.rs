//! An agent that is called from outside: each call is a run of its own.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use convoke_agent::registry::Registered;
use convoke_agent::{AgentTool, RunReport, new_run_id};
use convoke_core::{Cause, Outcome, Repeat, Status, ToolError, ToolSpec};
use convoke_mcp::serve::told;
use convoke_model::Model;
use convoke_tool::{Invocation, Tool, ToolContext, ToolOutput};
use futures_util::StreamExt;
use serde_json::{Map, Value, json};

use crate::runtime::Runtime;

/// An agent as a tool that needs no run around it.
#[derive(Clone)]
pub(super) struct ServedAgent(Arc<Inner>);

struct Inner {
    tool: AgentTool,
    spec: ToolSpec,
    agent: Arc<Registered>,
    model: Arc<dyn Model>,
    runtime: Runtime,
}

impl ServedAgent {
    pub(super) fn new(agent: Arc<Registered>, model: Arc<dyn Model>, runtime: Runtime) -> Self {
        let tool = AgentTool::new(Arc::clone(&agent));
        let mut spec = tool.spec().clone();
        // A call that is made again is another run.
        spec.repeat = Repeat::Unsafe;
        Self(Arc::new(Inner { tool, spec, agent, model, runtime }))
    }
}

impl fmt::Debug for ServedAgent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ServedAgent").field(&self.0.spec.name).finish()
    }
}

impl Tool for ServedAgent {
    fn spec(&self) -> &ToolSpec {
        &self.0.spec
    }

    fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError> {
        let inputs = match &arguments {
            Value::Object(inputs) => inputs.clone(),
            _ => Map::new(),
        };
        // What is wrong with the inputs is found as it is for every other caller.
        let as_called = self.0.tool.prepare(arguments)?;
        let description = as_called.describe();
        Ok(Box::new(Call { agent: self.clone(), inputs, description }))
    }
}

struct Call {
    agent: ServedAgent,
    inputs: Map<String, Value>,
    description: Option<String>,
}

#[async_trait]
impl Invocation for Call {
    fn describe(&self) -> Option<String> {
        self.description.clone()
    }

    async fn run(self: Box<Self>, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let Inner { agent, model, runtime, .. } = &*self.agent.0;
        let run = new_run_id(context.clock().now());
        let made = runtime.acting_as(agent, Arc::clone(model), &self.inputs, &run, |tools| tools);
        let (builder, task) =
            made.await.map_err(|error| ToolError::unavailable(error.to_string()))?;
        let builder = builder.cancellation(context.cancellation().clone()).build();
        let builder = builder.map_err(|error| ToolError::unavailable(error.to_string()))?;
        let mut running = builder.start_as(run, task);
        // The run ends by itself when the call is told to stop, and says so in its journal.
        while let Some(event) = running.next().await {
            if let Some(line) = told(&event) {
                context.progress().text(line);
            }
        }
        let report = running.report();
        let none = || ToolError::failed("the run gave no report; this is a defect");
        report.map(|report| output(&agent.definition().name, report)).ok_or_else(none)
    }
}

/// Says what came of a run.
fn output(agent: &str, report: &RunReport) -> ToolOutput {
    let Outcome { status, cause, partial, message, .. } = &report.outcome;
    let answer = report.answer.as_ref().or(partial.as_ref());
    let text = match answer {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let output = ToolOutput::new(json!({
        "agent": agent,
        "run": report.run,
        "status": status,
        "cause": cause,
        "output": answer,
        "usage": report.usage,
    }));
    let output = output.with_text(text);
    if *cause == Cause::Goal {
        return output;
    }
    let why = message.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let cause = json!(cause);
    let cause = cause.as_str().unwrap_or_default();
    let how = match status {
        Status::Denied => "was not allowed to do what it wanted",
        _ => "did not complete its task",
    };
    let said = format!("the agent `{agent}` {how} ({cause}){why}");
    output.failing(match status {
        Status::Denied | Status::Parked => ToolError::permission(said),
        Status::Cancelled => ToolError::cancelled(said),
        _ => ToolError::failed(said),
    })
}
