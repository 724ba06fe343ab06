//! A call that is made by an agent further down: one that the main agent called, or one that this one
//! called.

use std::sync::Arc;

use convoke::core::{Event, EventBody, Part, ToolCall};
use convoke::model::scripted::{ScriptedModel, Turn};
use convoke::tools::{ExecutorBuilder, MemorySink};
use convoke_agent::{AgentDefinition, AgentExecutor, AgentRegistry, Team};
use convoke_model::RequestSnapshot;
use serde_json::{Value, json};

/// The agents of a chain of this length: each may call the next.
pub(crate) fn chain(depth: u32) -> Team {
    let registry = AgentRegistry::new();
    for level in 1..=depth {
        let mut definition = AgentDefinition::new(format!("level_{level}"), "Acts.");
        definition.prompt.system_prompt = Some(format!("You are level_{level}."));
        definition.agents = vec![format!("level_{}", level + 1)];
        registry.register(definition).unwrap();
    }
    Team::builder(registry).build()
}

/// Plays all agents of a chain: each calls the next, and the last makes the call.
pub(crate) fn model(depth: u32, call: ToolCall) -> ScriptedModel {
    ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let level =
            request.system.strip_prefix("You are level_").and_then(|rest| rest.split_once('.'));
        let level: u32 = level.and_then(|(level, _)| level.parse().ok()).unwrap_or_default();
        let has_acted = request.messages.len() > 1;
        match (has_acted, level) {
            (true, 0) => Turn::text("That was it."),
            (true, _) => Turn::call("complete_task", json!({ "result": "That was it." })),
            (false, level) if level == depth => Turn::call(&call.name, call.arguments.clone()),
            (false, level) => Turn::call(
                "delegate_to_agent",
                json!({ "agent_name": format!("level_{}", level + 1), "prompt": "Act." }),
            ),
        }
    })
}

/// Makes a call at the end of a chain, and returns all that was said about it.
pub(crate) async fn call(depth: u32, tools: ExecutorBuilder, call: ToolCall) -> String {
    let (sink, tool) = (Arc::new(MemorySink::default()), call.name.clone());
    let agent = AgentExecutor::builder(model(depth, call), tools)
        .team(chain(depth))
        .sink(sink.clone())
        .build()
        .unwrap();
    agent.start("Act.").finish().await;
    let path = (1..=depth).fold("main".to_owned(), |path, level| format!("{path}/level_{level}"));
    let said = sink.events().iter().find_map(|event| said(event, &path, &tool));
    assert!(said.is_some(), "nobody made the call: {:#?}", sink.events().last());
    said.unwrap()
}

fn said(event: &Event, path: &str, tool: &str) -> Option<String> {
    let (tool_name, content, value) = match &event.body {
        EventBody::ToolCallCompleted { tool_name, content, result, .. } => {
            (tool_name, content, Value::clone(result))
        }
        EventBody::ToolCallFailed { tool_name, content, .. }
        | EventBody::ToolCallDenied { tool_name, content, .. } => (tool_name, content, Value::Null),
        _ => return None,
    };
    let texts = content.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let texts = texts.collect::<Vec<_>>().join("\n");
    (event.agent.as_str() == path && tool_name == tool).then(|| format!("{texts}\n{value:?}"))
}
