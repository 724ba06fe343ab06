//! An agent as a tool: the same contract as any other, with a run of its own as its body.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use convoke_core::{Category, Declaration, Kind, Repeat, ToolError, ToolSpec};
use convoke_tool::{Invocation, Tool, ToolContext, ToolOutput, cut_middle};
use serde_json::{Map, Value};

use crate::manner::Manner;
use crate::member::Member;
use crate::registry::Registered;
use crate::subagent::Order;

/// How much of an agent's description a model is told, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 1024;

/// How much of what an agent is to do is shown where it is named.
const SHOWN_BYTES: usize = 120;

/// Wraps an agent as a tool. Its arguments are the agent's inputs.
#[derive(Debug)]
pub struct AgentTool {
    spec: ToolSpec,
    agent: Arc<Registered>,
    /// How a run may call it; nothing, where each call is a run of its own.
    manner: Option<Manner>,
}

impl AgentTool {
    /// Wraps an agent.
    pub fn new(agent: Arc<Registered>) -> Self {
        let definition = agent.definition();
        let mut spec = agent_spec(&definition.name, &in_short(&definition.description));
        spec.display_name.clone_from(&definition.display_name);
        spec.parameters = definition.input.schema().into();
        if definition.run.at_most_once {
            spec.repeat = Repeat::Unsafe;
        }
        Self { spec, agent, manner: None }
    }

    /// Wraps an agent for runs, which may go on with one that ended.
    pub(crate) fn for_runs(agent: Arc<Registered>, manner: Manner) -> Self {
        let mut tool = Self::new(agent);
        let mut schema = tool.agent.input.schema();
        manner.declare(&mut schema, &tool.agent.input);
        tool.spec.parameters = schema.into();
        Self { manner: Some(manner), ..tool }
    }
}

/// Cuts a description to what a model is told of it with every request.
pub(crate) fn in_short(description: &str) -> Cow<'_, str> {
    if description.len() <= MAX_DESCRIPTION_BYTES {
        return Cow::Borrowed(description);
    }
    let starts = description.char_indices().map(|(at, _)| at);
    let end = starts.take_while(|at| *at <= MAX_DESCRIPTION_BYTES).last().unwrap_or_default();
    let start = description.get(..end).unwrap_or_default();
    let words = start.rsplit_once(char::is_whitespace).map_or(start, |(words, _)| words);
    Cow::Owned(format!("{} …", words.trim_end()))
}

/// What all tools that call agents say about themselves.
pub(crate) fn agent_spec(name: &str, description: &str) -> ToolSpec {
    let mut spec = ToolSpec::new(name, description, Kind::Agent);
    spec.category = Category::Agent;
    (spec.markdown, spec.streaming) = (true, true);
    // What was done before is found again: nothing is done twice.
    spec.repeat = Repeat::Idempotent;
    spec
}

impl Tool for AgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError> {
        let inputs = match arguments {
            Value::Object(inputs) => inputs,
            _ => Map::new(),
        };
        let agent = Arc::clone(&self.agent);
        SubagentInvocation::of(match self.manner {
            Some(manner) => manner.order(agent, inputs)?,
            None => Order::new(agent, inputs),
        })
    }
}

/// One call of an agent.
#[derive(Debug)]
pub(crate) struct SubagentInvocation {
    order: Order,
}

impl SubagentInvocation {
    /// Prepares a call. Texts that cannot be filled are found now, before anything happens.
    pub(crate) fn of(order: Order) -> Result<Box<dyn Invocation>, ToolError> {
        if order.more.is_none() {
            let texts = order.agent.template().render(&order.inputs);
            texts.map_err(|error| ToolError::validation(vec![error.to_string()]))?;
        }
        Ok(Box::new(Self { order }))
    }
}

#[async_trait]
impl Invocation for SubagentInvocation {
    fn describe(&self) -> Option<String> {
        let Order { agent, inputs, more, .. } = &self.order;
        let what = match (more, inputs.values().find_map(Value::as_str)) {
            (Some(more), _) => more.message.clone(),
            (None, Some(text)) => text.to_owned(),
            (None, None) => Value::Object(inputs.clone()).to_string(),
        };
        let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
        let what = cut_middle(&what, SHOWN_BYTES).unwrap_or(what);
        Some(format!("{}: {what}", agent.title()))
    }

    fn repeat(&self) -> Option<Repeat> {
        self.order.agent.run.at_most_once.then_some(Repeat::Unsafe)
    }

    async fn run(self: Box<Self>, context: ToolContext) -> Result<ToolOutput, ToolError> {
        Member::of(&context)?.call(self.order, &context).await
    }
}

/// A tool that a model is told about in other words.
pub(crate) struct Redeclared {
    tool: Arc<dyn Tool>,
    declaration: Declaration,
}

impl Redeclared {
    pub(crate) fn tool(tool: Arc<dyn Tool>, declaration: Declaration) -> Arc<dyn Tool> {
        Arc::new(Self { tool, declaration })
    }
}

impl Tool for Redeclared {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn declaration(&self) -> Declaration {
        self.declaration.clone()
    }

    fn variable(&self, arguments: &Value) -> Option<(String, String)> {
        self.tool.variable(arguments)
    }

    fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError> {
        self.tool.prepare(arguments)
    }
}
