//! Writes a request. What stays the same comes first, then the conversation, then what may change from
//! one question to the next.

use std::borrow::Cow;

use convoke_core::{Declaration, Message, Part, Role};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::request::{Effort, OutputSchema, Request, ToolChoice};
use crate::wire::openai::part::{Content, content, is_shown, joined_text};
use crate::wire::openai::{arguments, family, schema};
use crate::wire::plain;

/// What stands in for the text of a result that is an image.
const SEE_BELOW: &str = "The result is in the next message.";

/// The longest id of a call that OpenAI takes on this wire.
const LONGEST_ID: usize = 40;

pub(super) fn body(model: &str, request: &Request<'_>) -> Vec<u8> {
    let settings = request.settings;
    let (max_completion_tokens, max_tokens) = match request.max_output() {
        max if family::is_openai(model) => (max, None),
        max => (None, max),
    };
    let body = Body {
        model,
        tools: request.tools.iter().map(Tool::new).collect(),
        messages: messages(model, request),
        tool_choice: match request.tool_choice {
            // A choice without tools to choose from is refused.
            _ if request.tools.is_empty() => None,
            ToolChoice::Auto => None,
            ToolChoice::None => Some(Choice::Word("none")),
            ToolChoice::Only(name) => {
                Some(Choice::Only(Typed::Function { function: Name { name } }))
            }
        },
        max_completion_tokens,
        max_tokens,
        temperature: settings.temperature,
        top_p: settings.top_p,
        reasoning_effort: settings.reasoning_effort.map(Effort::as_str),
        response_format: request.output.map(ResponseFormat::new),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
    };
    // Strings, numbers and JSON values: nothing of it can fail to be written.
    serde_json::to_vec(&body).unwrap_or_default()
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// What OpenAI wraps twice: `{"type":"function","function":…}`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Typed<T> {
    Function { function: T },
}

#[derive(Serialize)]
#[serde(transparent)]
struct Tool<'a>(Typed<Function<'a>>);

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

impl<'a> Tool<'a> {
    fn new(declaration: &'a Declaration) -> Self {
        let Declaration { name, description, parameters } = declaration;
        let parameters = parameters.text();
        Self(Typed::Function { function: Function { name, description, parameters } })
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Word(&'static str),
    Only(Typed<Name<'a>>),
}

#[derive(Serialize)]
struct Name<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonSchema { json_schema: JsonSchema<'a> },
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'a str,
    schema: &'a Value,
    strict: bool,
}

impl<'a> ResponseFormat<'a> {
    fn new(OutputSchema { name, schema }: &'a OutputSchema) -> Self {
        let strict = schema::is_strict(schema);
        Self::JsonSchema { json_schema: JsonSchema { name, schema, strict } }
    }
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum ChatMessage<'a> {
    System {
        content: Cow<'a, str>,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        /// `null` beside calls without a text: some servers miss the key otherwise.
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
    },
}

/// Some servers take nothing but a string, so a list is sent only where it is needed.
#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
    File { file: File },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct File {
    filename: &'static str,
    file_data: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    #[serde(flatten)]
    call: Typed<CallFunction<'a>>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

fn messages<'a>(model: &str, request: &Request<'a>) -> Vec<ChatMessage<'a>> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(ChatMessage::System { content: request.system.into() });
    }
    // Results that come as several messages are one turn: nothing may stand between them.
    let same_turn =
        |one: &Message, next: &Message| [one, next].iter().all(|it| it.role == Role::Tool);
    for turn in request.messages.chunk_by(same_turn) {
        if let [Message { role: Role::System, parts }] = turn {
            messages.push(ChatMessage::System { content: joined_text(parts, "\n\n") });
        } else if let [Message { role: Role::Assistant, parts }] = turn {
            messages.extend(assistant(model, parts));
        } else {
            let parts = turn.iter().flat_map(|message| &message.parts);
            messages.extend(parts.clone().filter_map(|part| tool_result(model, part)));
            messages.extend(user(parts));
        }
    }
    messages
}

/// An answer of the model. One that says nothing, as far as this wire can tell, is left out.
fn assistant<'a>(model: &str, parts: &'a [Part]) -> Option<ChatMessage<'a>> {
    let tool_calls: Vec<_> = parts.iter().filter_map(|part| call(model, part)).collect();
    let text = joined_text(parts, "\n\n");
    if text.is_empty() && tool_calls.is_empty() {
        return None;
    }
    let thoughts_go_back = family::wants_thoughts_back(model) && !tool_calls.is_empty();
    let reasoning_content = thoughts_go_back.then(|| thoughts(parts).join("\n\n"));
    let content = (!text.is_empty()).then_some(text);
    Some(ChatMessage::Assistant { content, reasoning_content, tool_calls })
}

fn thoughts(parts: &[Part]) -> Vec<&str> {
    let mut thoughts = Vec::new();
    for part in parts {
        if let Part::Thought { text } = part {
            thoughts.push(text.as_str());
        }
    }
    thoughts
}

fn call<'a>(model: &str, part: &'a Part) -> Option<Call<'a>> {
    let Part::ToolCall(call) = part else { return None };
    let name = plain::tool_name(&call.name);
    let function = CallFunction { name, arguments: arguments::write(&call.arguments) };
    Some(Call { id: call_id(model, call.id.as_str()), call: Typed::Function { function } })
}

/// OpenAI refuses ids that are longer than its own could be. Other servers get them as they are: some
/// proxies keep what they have to know about a call in its id.
fn call_id<'a>(model: &str, id: &'a str) -> Cow<'a, str> {
    if family::is_openai(model) { plain::text(id, LONGEST_ID) } else { Cow::Borrowed(id) }
}

fn tool_result<'a>(model: &str, part: &'a Part) -> Option<ChatMessage<'a>> {
    let Part::ToolResult { call, content, .. } = part else { return None };
    let text = joined_text(content, "\n");
    let only_shown = text.is_empty() && content.iter().any(is_shown);
    let content = if only_shown { SEE_BELOW.into() } else { text };
    Some(ChatMessage::Tool { tool_call_id: call_id(model, call.as_str()), content })
}

/// What a person said, or what follows the results of a turn: their images. All results come first,
/// since nothing may stand between them.
fn user<'a>(parts: impl Iterator<Item = &'a Part> + Clone) -> Option<ChatMessage<'a>> {
    let mut shown = Vec::new();
    for part in parts.clone() {
        match part {
            Part::ToolResult { call, content, .. } if content.iter().any(is_shown) => {
                let text = format!("From the result of call {call}:").into();
                shown.push(ContentPart::Text { text });
                shown.extend(content.iter().filter(|part| is_shown(part)).filter_map(content_part));
            }
            other => shown.extend(content_part(other)),
        }
    }
    if shown.is_empty() {
        return None;
    }
    let only_text = shown.iter().all(|part| matches!(part, ContentPart::Text { .. }));
    let content = if only_text {
        UserContent::Text(joined_text(parts, "\n\n"))
    } else {
        UserContent::Parts(shown)
    };
    Some(ChatMessage::User { content })
}

fn content_part(part: &Part) -> Option<ContentPart<'_>> {
    Some(match content(part)? {
        Content::Text(text) => ContentPart::Text { text },
        Content::Image(url) => ContentPart::ImageUrl { image_url: ImageUrl { url } },
        Content::File(filename, file_data) => {
            ContentPart::File { file: File { filename, file_data } }
        }
    })
}
