//! What is done with a server in a scenario: everything it offers is used once, as an agent would.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use convoke_core::{ToolCall, ToolError};
use convoke_mcp::client::{
    Elicitation, Elicited, Elicitor, ElicitorHandle, McpTool, ServerConfig, Servers, Surroundings,
};
use convoke_tool::{
    Authorizer, Decision, Request, Tool, ToolContext, ToolExecutor, ToolRegistry, ToolView,
};
use serde_json::{Map, Value, json};

use crate::login::logins;
use crate::{SERVER, Task};

/// Does what a scenario wants.
pub(crate) async fn run(task: &Task) -> Result<(), Box<dyn Error>> {
    let surroundings = Surroundings::new("/").authorization(Arc::new(logins(task)?));
    let servers = Servers::new(vec![ServerConfig::http(SERVER, &task.url)], surroundings);
    let done = explore(task, &servers).await;
    servers.stop().await;
    Ok(done?)
}

async fn explore(task: &Task, servers: &Servers) -> Result<(), ToolError> {
    servers.start(SERVER).await?;
    call_tools(task, servers).await?;
    for resource in servers.list_resources(SERVER).await? {
        servers.read_resource(SERVER, &resource.uri).await?;
    }
    for prompt in servers.list_prompts(SERVER).await? {
        servers.get_prompt(SERVER, &prompt.name, BTreeMap::new()).await?;
    }
    Ok(())
}

/// Calls tools through the whole pipeline, one after the other.
async fn call_tools(task: &Task, servers: &Servers) -> Result<(), ToolError> {
    let tools = servers.tools();
    let registry = ToolRegistry::new();
    servers.introduce(&registry);
    let person = ElicitorHandle(Arc::new(Person));
    let context = ToolContext::builder(SERVER).extension(person).build();
    let executor =
        ToolExecutor::builder(ToolView::of(registry), context).authorizer(Anything).build();
    for (number, (name, arguments)) in calls(task, &tools).into_iter().enumerate() {
        let call = ToolCall::new(number.to_string(), name, arguments);
        if let Some(error) = executor.execute(call).await.error() {
            return Err(error.clone());
        }
    }
    Ok(())
}

/// Returns the calls to make: those that the scenario names, or one of each tool.
fn calls(task: &Task, tools: &[McpTool]) -> Vec<(String, Value)> {
    let named = |name: &str| tools.iter().find(|tool| tool.name() == name);
    if let Some(wanted) = task.context.get("toolCalls").and_then(Value::as_array) {
        let call = |call: &Value| {
            let tool = named(call.get("name")?.as_str()?)?;
            Some((tool.spec().name.clone(), call.get("arguments").cloned().unwrap_or_default()))
        };
        return wanted.iter().filter_map(call).collect();
    }
    if let (Some(rich), Some(echo)) = (named("json_schema_2020_12_tool"), named("json_schema_echo"))
    {
        // What counts is that its schema comes back as it was.
        return vec![(echo.spec().name.clone(), json!({ "schema": rich.spec().parameters }))];
    }
    tools.iter().map(|tool| (tool.spec().name.clone(), filled(&tool.spec().parameters))).collect()
}

/// Fills in what a schema requires, with something of the right type.
fn filled(schema: &Value) -> Value {
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let fields = required.filter_map(|name| {
        let kind = schema.get("properties")?.get(name)?.get("type").and_then(Value::as_str);
        let value = match kind {
            Some("number" | "integer") => json!(2),
            Some("boolean") => json!(true),
            Some("object") => json!({}),
            Some("array") => json!([]),
            _ => json!("text"),
        };
        Some((name.to_owned(), value))
    });
    Value::Object(fields.collect())
}

/// Allows every call: the suite's servers do nothing.
#[derive(Debug)]
struct Anything;

impl Authorizer for Anything {
    fn decide(&self, _: &Request<'_>) -> Decision {
        Decision::Allow { rule: "the suite may do anything".to_owned() }
    }
}

/// Somebody who accepts every question as it is suggested.
#[derive(Debug)]
struct Person;

#[async_trait]
impl Elicitor for Person {
    async fn elicit(&self, _: Elicitation) -> Elicited {
        Elicited::Accept(Map::new())
    }
}
