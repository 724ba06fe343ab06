//! Resources and prompts: what servers let be read, beside the tools they let be called.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoke_core::{Message, Part, Role, ToolError};
use convoke_tool::ToolContext;
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ReadResourceRequest,
    ReadResourceRequestParams,
};
use serde_json::{Map, Value};

use super::bounds::bounded;
use super::result;
use super::rounds::Answers;
use super::server::Server;

/// Reads a resource.
pub(super) async fn read_resource(
    server: &Arc<Server>,
    uri: &str,
    context: Option<&ToolContext>,
) -> Result<Vec<Part>, ToolError> {
    let request = |answers: Answers| {
        let mut params = ReadResourceRequestParams::new(uri);
        params.input_responses = answers.responses;
        params.request_state = answers.state;
        ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
    };
    let asked = server.ask(context, request).await;
    let answer = asked.map_err(|failure| server.tell(failure))?;
    let contents = answer.get("contents").and_then(Value::as_array);
    let contents = contents.map_or(&[][..], Vec::as_slice);
    Ok(bounded(contents.iter().filter_map(result::contents).flatten().collect()))
}

/// Has a prompt filled in.
pub(super) async fn get_prompt(
    server: &Arc<Server>,
    name: &str,
    arguments: BTreeMap<String, String>,
    context: Option<&ToolContext>,
) -> Result<Vec<Message>, ToolError> {
    let arguments: Map<String, Value> =
        arguments.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
    let request = |answers: Answers| {
        let mut params = GetPromptRequestParams::new(name);
        if !arguments.is_empty() {
            params.arguments = Some(arguments.clone());
        }
        params.input_responses = answers.responses;
        params.request_state = answers.state;
        ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
    };
    let asked = server.ask(context, request).await;
    let mut answer = asked.map_err(|failure| server.tell(failure))?;
    let messages = match answer.get_mut("messages").map(Value::take) {
        Some(Value::Array(messages)) => messages,
        _ => Vec::new(),
    };
    Ok(messages.into_iter().map(message).collect())
}

fn message(mut said: Value) -> Message {
    let role = match said.get("role").and_then(Value::as_str) {
        Some("assistant") => Role::Assistant,
        _ => Role::User,
    };
    let parts = said.get_mut("content").map(Value::take).map(result::read).unwrap_or_default();
    Message { role, parts: bounded(parts) }
}
