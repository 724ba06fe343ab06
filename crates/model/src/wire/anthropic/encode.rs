//! Writes a request.

use std::borrow::Cow;

use convoke_core::{Message, Part, Role};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::NAME;
use crate::request::{Effort, OutputSchema, Request, ToolChoice};
use crate::wire::{json, plain};

/// The longest answer where nobody said one and nothing is known about the model; the provider insists
/// on a number.
const DEFAULT_MAX_TOKENS: u64 = 8_192;

/// The longest answer where nobody said one, of a model that could give a longer one: what is set aside
/// for the answer is taken from the room for the conversation.
const USUAL_MAX_TOKENS: u64 = 32_000;

/// The provider minds what is in an id, not how long it is.
const LONGEST_ID: usize = usize::MAX;

/// The least the provider lets a model think, if at all.
const LEAST_THINKING: u64 = 1_024;

/// What stands in an error result without any text, which the provider refuses.
const NO_MESSAGE: &str = "the tool failed and said nothing";

/// What stable prefixes are made of comes first, then the conversation, then all that may differ from
/// one request to the next.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Instructions<'a>; 1]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Turn<'a>>,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    cache_control: Marker,
    stream: bool,
}

#[derive(Serialize)]
struct Instructions<'a> {
    r#type: &'static str,
    text: &'a str,
    cache_control: Marker,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Marker {
    Ephemeral,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Choice<'a> {
    None,
    Tool { name: &'a str },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Enabled { budget_tokens: u64 },
    Disabled,
    Adaptive,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonSchema { schema: &'a Value },
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A block of the provider's own, as it came.
    #[serde(untagged)]
    Own(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

pub(super) fn body(model: &str, known_max: Option<u64>, request: &Request<'_>) -> Vec<u8> {
    let (max_tokens, thinking) = limits(known_max, request);
    json::bytes(&Body {
        model,
        system: instructions(request.system),
        tools: tools(request),
        messages: turns(request.messages),
        max_tokens,
        tool_choice: choice(request),
        temperature: request.settings.temperature,
        top_p: request.settings.top_p,
        thinking,
        output_config: output_config(request.settings.reasoning_effort, request.output),
        cache_control: Marker::Ephemeral,
        stream: true,
    })
}

fn instructions(text: &str) -> Option<[Instructions<'_>; 1]> {
    let block = Instructions { r#type: "text", text, cache_control: Marker::Ephemeral };
    (!text.trim().is_empty()).then_some([block])
}

fn tools<'a>(request: &Request<'a>) -> Vec<Tool<'a>> {
    let tool = |tool: &'a convoke_core::Declaration| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: tool.parameters.text(),
    };
    request.tools.iter().map(tool).collect()
}

/// A choice without tools to choose from is refused by the provider.
fn choice<'a>(request: &Request<'a>) -> Option<Choice<'a>> {
    match request.tool_choice {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some(Choice::None),
        ToolChoice::Only(name) => Some(Choice::Tool { name }),
    }
}

/// Returns the longest answer and how much of it may be thoughts. Thoughts count as part of the answer,
/// so where nobody said how long that may be they come on top of the default, as far as the model can
/// give that much; a length that somebody did say holds. Thoughts that do not fit get half of it.
fn limits(known_max: Option<u64>, request: &Request<'_>) -> (u64, Option<Thinking>) {
    let wanted = request.max_output();
    let default = known_max.map_or(DEFAULT_MAX_TOKENS, |known| known.min(USUAL_MAX_TOKENS));
    let is_forced = matches!(choice(request), Some(Choice::Tool { .. }));
    let budget = match (request.settings.thinking_budget, request.settings.reasoning_effort) {
        (None, Some(Effort::None)) => 0,
        (None, _) => return (wanted.unwrap_or(default), None),
        (Some(_), _) if is_forced => 0,
        (Some(budget), _) => budget,
    };
    let Ok(budget) = u64::try_from(budget) else {
        return (wanted.unwrap_or(default), Some(Thinking::Adaptive));
    };
    let with_thoughts = default.saturating_add(budget).min(known_max.unwrap_or(u64::MAX));
    let max_tokens = wanted.unwrap_or(with_thoughts);
    let fitting = if budget < max_tokens { budget } else { max_tokens / 2 };
    let thinking = match fitting {
        0 => Thinking::Disabled,
        _ if fitting < budget && fitting < LEAST_THINKING => Thinking::Disabled,
        budget_tokens => Thinking::Enabled { budget_tokens },
    };
    (max_tokens, Some(thinking))
}

fn output_config(
    effort: Option<Effort>,
    output: Option<&OutputSchema>,
) -> Option<OutputConfig<'_>> {
    let effort = effort.and_then(effort_word);
    let format = output.map(|output| Format::JsonSchema { schema: &output.schema });
    (effort.is_some() || format.is_some()).then_some(OutputConfig { effort, format })
}

/// The provider's words begin with `low`; no effort at all is thinking switched off.
fn effort_word(effort: Effort) -> Option<&'static str> {
    match effort {
        Effort::None => None,
        Effort::Minimal => Some(Effort::Low.as_str()),
        other => Some(other.as_str()),
    }
}

fn turns(messages: &[Message]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for message in messages {
        let role = match message.role {
            Role::Assistant => "assistant",
            Role::System | Role::User | Role::Tool => "user",
        };
        let content: Vec<_> = message.parts.iter().filter_map(block).collect();
        match turns.last_mut() {
            _ if content.is_empty() => {}
            Some(turn) if turn.role == role => turn.content.extend(content),
            _ => turns.push(Turn { role, content }),
        }
    }
    for turn in &mut turns {
        if turn.role == "user" {
            turn.content.sort_by_key(|block| !matches!(block, Block::ToolResult { .. }));
        }
    }
    turns
}

fn block(part: &Part) -> Option<Block<'_>> {
    match part {
        Part::ToolCall(call) => Some(Block::ToolUse {
            id: plain::text(call.id.as_str(), LONGEST_ID),
            name: plain::tool_name(&call.name),
            input: json::object(&call.arguments),
        }),
        Part::ToolResult { call, content, is_error } => {
            Some(result(call.as_str(), content, *is_error))
        }
        Part::Opaque { provider, data } => {
            (provider == NAME && data.is_object()).then_some(Block::Own(data))
        }
        other => visible(other),
    }
}

fn result<'a>(call: &'a str, content: &'a [Part], is_error: bool) -> Block<'a> {
    let mut content: Vec<_> = content.iter().filter_map(visible).collect();
    if is_error && content.is_empty() {
        content.push(Block::Text { text: Cow::Borrowed(NO_MESSAGE) });
    }
    Block::ToolResult { tool_use_id: plain::text(call, LONGEST_ID), content, is_error }
}

/// Writes what may stand in a message as well as in a result. Blank text is refused by the provider.
fn visible(part: &Part) -> Option<Block<'_>> {
    match part {
        Part::Text { text } if text.trim().is_empty() => None,
        Part::Text { text } => Some(Block::Text { text: Cow::Borrowed(text) }),
        Part::Link { uri, title } => Some(Block::Text { text: json::link(uri, title.as_deref()) }),
        Part::Media { mime, data } => Some(media(mime, data)),
        _ => None,
    }
}

/// What the provider cannot look at is named instead: one such part would make it refuse the whole
/// conversation from then on.
fn media<'a>(mime: &'a str, data: &'a str) -> Block<'a> {
    let source = Source::Base64 { media_type: mime, data };
    match mime {
        "image/jpeg" | "image/png" | "image/gif" | "image/webp" => Block::Image { source },
        "application/pdf" => Block::Document { source },
        _ => Block::Text { text: Cow::Owned(format!("[{mime}, which this model cannot read]")) },
    }
}
