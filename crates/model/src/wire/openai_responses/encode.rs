//! Writes a request. What stays the same comes first, then the conversation, then what may change from
//! one question to the next.

use std::borrow::Cow;

use convoke_core::{CallId, Declaration, Message, Part, Role};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::PROVIDER;
use crate::request::{Effort, OutputSchema, Request, ToolChoice};
use crate::wire::openai::part::{Content, content, is_shown, joined_text};
use crate::wire::openai::{arguments, family, schema, text};
use crate::wire::plain;

/// The longest id of a call that OpenAI takes on this wire.
const LONGEST_ID: usize = 64;

pub(super) fn body(model: &str, request: &Request<'_>) -> Vec<u8> {
    let settings = request.settings;
    let reasons = settings.reasoning_effort.is_some() || family::reasons(model);
    let body = Body {
        model,
        instructions: request.system,
        tools: request.tools.iter().map(Tool::new).collect(),
        input: request.messages.iter().flat_map(|message| items(message, reasons)).collect(),
        tool_choice: match request.tool_choice {
            // A choice without tools to choose from is refused.
            _ if request.tools.is_empty() => None,
            ToolChoice::Auto => None,
            ToolChoice::None => Some(Choice::Word("none")),
            ToolChoice::Only(name) => Some(Choice::Only(Named::Function { name })),
        },
        max_output_tokens: request.max_output(),
        temperature: settings.temperature,
        top_p: settings.top_p,
        reasoning: settings.reasoning_effort.map(Reasoning::new),
        text: request.output.map(|output| Text { format: Format::new(output) }),
        include: if reasons { &["reasoning.encrypted_content"] } else { &[] },
        store: false,
        stream: true,
    };
    // Strings, numbers and JSON values: nothing of it can fail to be written.
    serde_json::to_vec(&body).unwrap_or_default()
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    input: Vec<Input<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    store: bool,
    stream: bool,
}

/// `strict` is said, since leaving it out means yes here.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function { name: &'a str, description: &'a str, parameters: &'a RawValue, strict: bool },
}

impl<'a> Tool<'a> {
    fn new(Declaration { name, description, parameters }: &'a Declaration) -> Self {
        Self::Function { name, description, parameters: parameters.text(), strict: false }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Word(&'static str),
    Only(Named<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Named<'a> {
    Function { name: &'a str },
}

#[derive(Serialize)]
struct Reasoning {
    effort: &'static str,
    summary: &'static str,
}

impl Reasoning {
    fn new(effort: Effort) -> Self {
        Self { effort: effort.as_str(), summary: "auto" }
    }
}

#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonSchema { name: &'a str, schema: &'a Value, strict: bool },
}

impl<'a> Format<'a> {
    fn new(OutputSchema { name, schema }: &'a OutputSchema) -> Self {
        Self::JsonSchema { name, schema, strict: schema::is_strict(schema) }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Item(Item<'a>),
    /// A reasoning item, as it came.
    Reasoning(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
        content: Vec<ContentPart<'a>>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Output<'a>,
    },
}

/// A list is sent only where a string does not do: llama.cpp takes no images in it.
#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: String },
    InputFile { filename: &'static str, file_data: String },
    OutputText { text: Cow<'a, str> },
}

fn items(Message { role, parts }: &Message, reasons: bool) -> Vec<Input<'_>> {
    match role {
        Role::Assistant => answer(parts, reasons),
        Role::System => said("system", parts).into_iter().collect(),
        Role::User | Role::Tool => {
            let results = parts.iter().filter_map(result);
            results.chain(said("user", parts)).collect()
        }
    }
}

fn said<'a>(role: &'static str, parts: &'a [Part]) -> Option<Input<'a>> {
    let content: Vec<_> = parts.iter().filter_map(content_part).collect();
    (!content.is_empty()).then_some(Input::Item(Item::Message { role, phase: None, content }))
}

fn result(part: &Part) -> Option<Input<'_>> {
    let Part::ToolResult { call, content, .. } = part else { return None };
    let output = if content.iter().any(is_shown) {
        Output::Parts(content.iter().filter_map(content_part).collect())
    } else {
        Output::Text(joined_text(content, "\n"))
    };
    Some(Input::Item(Item::FunctionCallOutput { call_id: call_id(call), output }))
}

/// What the model said. Reasoning goes back only together with what it led to: alone it is refused.
fn answer(parts: &[Part], reasons: bool) -> Vec<Input<'_>> {
    let mut items = Vec::new();
    let mut reasoning = Vec::new();
    let mut phase = None;
    for part in parts {
        let item = match part {
            Part::Opaque { provider, data } if provider == PROVIDER => {
                match text(data, "type") {
                    "message" => phase = data.get("phase").and_then(Value::as_str),
                    "reasoning" if reasons && !text(data, "encrypted_content").is_empty() => {
                        reasoning.push(Input::Reasoning(data));
                    }
                    _ => {}
                }
                continue;
            }
            Part::ToolCall(call) => Item::FunctionCall {
                call_id: call_id(&call.id),
                name: plain::tool_name(&call.name),
                arguments: arguments::write(&call.arguments),
            },
            part => match content(part) {
                Some(Content::Text(text)) if !text.is_empty() => Item::Message {
                    role: "assistant",
                    phase: phase.take(),
                    content: vec![ContentPart::OutputText { text }],
                },
                _ => continue,
            },
        };
        items.append(&mut reasoning);
        items.push(Input::Item(item));
    }
    items
}

fn call_id(id: &CallId) -> Cow<'_, str> {
    plain::text(id.as_str(), LONGEST_ID)
}

fn content_part(part: &Part) -> Option<ContentPart<'_>> {
    Some(match content(part)? {
        Content::Text(text) => ContentPart::InputText { text },
        Content::Image(image_url) => ContentPart::InputImage { image_url },
        Content::File(filename, file_data) => ContentPart::InputFile { filename, file_data },
    })
}
