//! Writes a request.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::contents::{Content, Piece, contents};
use crate::request::{Effort, Request, Settings, ToolChoice};
use crate::wire::json;

/// What stable prefixes are made of comes first, then the conversation, then all that may differ from
/// one request to the next.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig<'a>>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [Piece<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Function<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    function_calling_config: Calling<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Calling<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[&'a str; 1]>,
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_thoughts: bool,
}

pub(super) fn body(model: &str, request: &Request<'_>) -> Vec<u8> {
    let generation = Generation::of(model);
    let config = generation_config(generation, request);
    let text = request.system;
    json::bytes(&Body {
        system_instruction: (!text.is_empty())
            .then(|| Instruction { parts: [Piece::text(text.into())] }),
        tools: tools(request),
        contents: contents(generation, request.messages),
        tool_config: tool_config(request),
        generation_config: (config != GenerationConfig::default()).then_some(config),
    })
}

/// Which requests a model understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    /// Up to Gemini 2.5.
    Early,
    /// From Gemini 3 on.
    Third,
    /// The name does not say.
    Unsaid,
}

impl Generation {
    pub(super) fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let number = name.strip_prefix("gemini-").unwrap_or_default();
        let digits = number.find(|next: char| !next.is_ascii_digit()).unwrap_or(number.len());
        match number.get(..digits).unwrap_or_default().parse::<u32>() {
            Ok(3..) => Self::Third,
            Ok(_) => Self::Early,
            Err(_) => Self::Unsaid,
        }
    }
}

fn tools<'a>(request: &Request<'a>) -> Option<[Tools<'a>; 1]> {
    let function = |tool: &'a convoke_core::Declaration| Function {
        name: &tool.name,
        description: &tool.description,
        parameters_json_schema: tool.parameters.text(),
    };
    let function_declarations: Vec<_> = request.tools.iter().map(function).collect();
    (!function_declarations.is_empty()).then_some([Tools { function_declarations }])
}

/// A choice without tools to choose from means nothing.
fn tool_config<'a>(request: &Request<'a>) -> Option<ToolConfig<'a>> {
    let (mode, name) = match request.tool_choice {
        _ if request.tools.is_empty() => return None,
        ToolChoice::Auto => return None,
        ToolChoice::None => ("NONE", None),
        ToolChoice::Only(name) => ("ANY", Some([name])),
    };
    let function_calling_config = Calling { mode, allowed_function_names: name };
    Some(ToolConfig { function_calling_config })
}

fn generation_config<'a>(generation: Generation, request: &Request<'a>) -> GenerationConfig<'a> {
    GenerationConfig {
        temperature: request.settings.temperature,
        top_p: request.settings.top_p,
        max_output_tokens: request.max_output(),
        response_mime_type: request.output.map(|_| "application/json"),
        response_json_schema: request.output.map(|output| &output.schema),
        thinking_config: thinking_config(generation, request.settings),
    }
}

/// The provider refuses a number and a word together, and early models refuse a word at all. Where both
/// are set, models from the third generation on get the word and all others the number. Thoughts are
/// asked for where somebody cared to set either and did not switch thinking off.
fn thinking_config(generation: Generation, settings: &Settings) -> Option<ThinkingConfig> {
    let number = |budget: i64| ThinkingConfig {
        thinking_budget: Some(budget.max(-1)),
        include_thoughts: budget != 0,
        ..ThinkingConfig::default()
    };
    let word = |effort: Effort| ThinkingConfig {
        thinking_level: Some(level(effort)),
        include_thoughts: effort != Effort::None,
        ..ThinkingConfig::default()
    };
    Some(match (settings.thinking_budget, settings.reasoning_effort, generation) {
        (None, None, _) => return None,
        (_, Some(effort), Generation::Third) => word(effort),
        (Some(budget), _, _) => number(budget),
        (None, Some(Effort::None), _) => number(0),
        (None, Some(effort), Generation::Early) => number(budget_of(effort)),
        (None, Some(effort), Generation::Unsaid) => word(effort),
    })
}

/// The provider's words lie between `minimal` and `high`.
const fn level(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High | Effort::Xhigh => "high",
    }
}

/// What a word is worth in tokens, where only those are understood: as much as the provider itself
/// makes of it in its other interface, which takes words for every model.
const fn budget_of(effort: Effort) -> i64 {
    match effort {
        Effort::None => 0,
        Effort::Minimal | Effort::Low => 1_024,
        Effort::Medium => 8_192,
        Effort::High | Effort::Xhigh => 24_576,
    }
}
