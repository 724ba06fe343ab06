//! Answers of a model that servers ask for in the middle of a call.
//!
//! A server gets one only if its configuration grants it *and* the call it works for has a [`Sampler`];
//! everything else is refused. What it costs, and whether a person is asked, is the sampler's business.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use convoke_core::{Message, Part, Role, ToolError};
use convoke_tool::ToolContext;
use serde_json::{Value, json};

use super::bounds::bounded;

/// Has a model answer for servers.
#[async_trait]
pub trait Sampler: Send + Sync + Debug {
    /// Answers, or says why not. The context is that of the call that the server works for.
    async fn sample(
        &self,
        context: &ToolContext,
        request: SampleRequest,
    ) -> Result<Sample, ToolError>;
}

/// A [`Sampler`] as the context of a call holds it.
#[derive(Clone, Debug)]
pub struct SamplerHandle(pub Arc<dyn Sampler>);

/// Who answers, and the call for which.
#[derive(Clone, Debug)]
pub(super) struct ForCall {
    pub(super) sampler: Arc<dyn Sampler>,
    context: ToolContext,
}

impl ForCall {
    /// Finds who answers for a call.
    pub(super) fn of(context: Option<&ToolContext>) -> Option<Self> {
        let context = context?;
        let handle = context.extension::<SamplerHandle>()?;
        Some(Self { sampler: Arc::clone(&handle.0), context: context.clone() })
    }
}

/// What a server wants a model to answer. All of it is the server's text.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRequest {
    /// The server that asks, as it is called here.
    pub server: String,
    /// Standing instructions.
    pub system: Option<String>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// How long the answer may be.
    pub max_tokens: u32,
    /// Names of models it would like, best first.
    pub models: Vec<String>,
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The answer.
    pub text: String,
    /// The model that gave it.
    pub model: String,
}

/// Reads a request, and has it answered.
pub(super) async fn answer(
    server: &str,
    params: &Value,
    sampling: Option<ForCall>,
) -> Result<Value, String> {
    let Some(ForCall { sampler, context }) = sampling else {
        return Err("no model answers for servers here".to_owned());
    };
    let request = read(server, params)?;
    let sample = sampler.sample(&context, request).await.map_err(|error| error.message)?;
    Ok(json!({
        "role": "assistant",
        "content": { "type": "text", "text": sample.text },
        "model": sample.model,
        "stopReason": "endTurn",
    }))
}

fn read(server: &str, params: &Value) -> Result<SampleRequest, String> {
    // That was not offered, and an answer without it would be one to another question.
    if params.get("tools").is_some_and(|tools| !tools.is_null()) {
        return Err("a model that answers for a server calls no tools".to_owned());
    }
    let said = params.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let messages: Option<Vec<Message>> = said.iter().map(message).collect();
    let messages = messages.ok_or("a message is neither text nor an image nor a sound")?;
    let max_tokens = params.get("maxTokens").and_then(Value::as_u64).unwrap_or_default();
    let hints = params.pointer("/modelPreferences/hints").and_then(Value::as_array);
    let name = |hint: &Value| hint.get("name").and_then(Value::as_str).map(str::to_owned);
    Ok(SampleRequest {
        server: server.to_owned(),
        system: params.get("systemPrompt").and_then(Value::as_str).map(str::to_owned),
        messages,
        max_tokens: u32::try_from(max_tokens).unwrap_or(u32::MAX),
        models: hints.map(|hints| hints.iter().filter_map(name).collect()).unwrap_or_default(),
    })
}

fn message(said: &Value) -> Option<Message> {
    let role = match said.get("role")?.as_str()? {
        "assistant" => Role::Assistant,
        _ => Role::User,
    };
    let parts = match said.get("content")? {
        Value::Array(blocks) => blocks.iter().map(part).collect::<Option<Vec<_>>>()?,
        block => vec![part(block)?],
    };
    Some(Message { role, parts: bounded(parts) })
}

fn part(block: &Value) -> Option<Part> {
    let text = |name: &str| block.get(name).and_then(Value::as_str).map(str::to_owned);
    match block.get("type")?.as_str()? {
        "text" => Some(Part::text(text("text")?)),
        "image" | "audio" => Some(Part::Media { mime: text("mimeType")?, data: text("data")? }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Echo;

    #[async_trait]
    impl Sampler for Echo {
        async fn sample(
            &self,
            _: &ToolContext,
            request: SampleRequest,
        ) -> Result<Sample, ToolError> {
            let text = request.messages.iter().map(Message::words).collect();
            Ok(Sample { text, model: request.models.concat() })
        }
    }

    fn for_call(sampler: impl Sampler + 'static) -> ForCall {
        let context = ToolContext::builder("t").build();
        ForCall { sampler: Arc::new(sampler), context }
    }

    #[tokio::test]
    async fn a_request_is_read_and_answered() {
        let params = json!({
            "messages": [
                { "role": "user", "content": { "type": "text", "text": "a" } },
                { "role": "user", "content": [{ "type": "text", "text": "b" }] },
            ],
            "maxTokens": 10,
            "modelPreferences": { "hints": [{ "name": "m" }] },
        });
        let answer_of = answer("s", &params, Some(for_call(Echo))).await.unwrap();
        assert_eq!(answer_of["content"]["text"], "ab");
        assert_eq!(answer_of["model"], "m");
        assert!(answer("s", &params, None).await.is_err());
        let odd = json!({ "messages": [{ "role": "user", "content": { "type": "tool_use" } }] });
        assert!(answer("s", &odd, Some(for_call(Echo))).await.is_err());
        let mut with_tools = params;
        with_tools["tools"] = json!([{ "name": "t", "inputSchema": { "type": "object" } }]);
        let refused = answer("s", &with_tools, Some(for_call(Echo))).await.unwrap_err();
        assert!(refused.contains("no tools"), "{refused}");
    }
}
