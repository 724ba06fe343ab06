//! Writes the conversation.

use std::borrow::Cow;
use std::collections::HashMap;

use convoke_core::{Message, Part, Role, ToolCall};
use serde::Serialize;
use serde_json::Value;

use super::encode::Generation;
use super::{ID, NAME, SIGNATURE};
use crate::wire::{json, plain};

/// The signature that the provider's documentation gives for calls which it did not make itself.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
pub(super) struct Content<'a> {
    role: &'static str,
    parts: Vec<Piece<'a>>,
}

/// A part: one of its first four fields is there.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Piece<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<Blob<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    args: Cow<'a, Value>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    response: Response,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Piece<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Response {
    Output(String),
    Error(String),
}

impl<'a> Piece<'a> {
    pub(super) fn text(text: Cow<'a, str>) -> Self {
        Self { text: Some(text), ..Self::default() }
    }

    fn media(mime: &'a str, data: &'a str) -> Self {
        Self { inline_data: Some(Blob { mime_type: mime, data }), ..Self::default() }
    }
}

/// A conversation on its way to the wire.
struct Writer<'a> {
    generation: Generation,
    contents: Vec<Content<'a>>,
    /// The calls so far, by our id. A later call takes an id over, so that a provider which counts from
    /// one in every turn is understood.
    calls: HashMap<&'a str, Called<'a>>,
    /// Where the results of the last turn's calls are.
    results: Option<usize>,
}

/// How the provider knows a call.
#[derive(Clone, Copy)]
struct Called<'a> {
    name: &'a str,
    id: Option<&'a str>,
}

pub(super) fn contents(generation: Generation, messages: &[Message]) -> Vec<Content<'_>> {
    let mut writer =
        Writer { generation, contents: Vec::new(), calls: HashMap::new(), results: None };
    for message in messages {
        match message.role {
            Role::Assistant => writer.answer(&message.parts),
            Role::System | Role::User | Role::Tool => writer.input(&message.parts),
        }
    }
    writer.contents
}

impl<'a> Writer<'a> {
    /// Writes what the model said.
    fn answer(&mut self, parts: &'a [Part]) {
        self.results = None;
        let mut pieces: Vec<Piece<'a>> = Vec::new();
        let mut note = Note::default();
        let mut wants_signature = self.generation == Generation::Third;
        for part in parts {
            if let Part::Opaque { provider, data } = part {
                if provider == NAME {
                    note = Note::read(data);
                }
                continue;
            }
            let Note { signature, id } = std::mem::take(&mut note);
            let mut piece = match part {
                Part::Text { text } if text.is_empty() && signature.is_none() => continue,
                Part::Text { text } => Piece::text(text.into()),
                Part::Media { mime, data } => Piece::media(mime, data),
                Part::Link { uri, title } => Piece::text(json::link(uri, title.as_deref())),
                Part::ToolCall(call) => self.call(call, id),
                _ => continue,
            };
            piece.thought_signature = signature;
            if piece.function_call.is_some() && std::mem::take(&mut wants_signature) {
                piece.thought_signature = signature.or(Some(FOREIGN_SIGNATURE));
            }
            pieces.push(piece);
        }
        self.push("model", pieces);
    }

    fn call(&mut self, call: &'a ToolCall, id: Option<&'a str>) -> Piece<'a> {
        let name = &call.name;
        self.calls.insert(call.id.as_str(), Called { name, id });
        let name = plain::tool_name(name);
        let function_call = FunctionCall { id, name, args: json::object(&call.arguments) };
        Piece { function_call: Some(function_call), ..Piece::default() }
    }

    /// Writes what the model is told: results first, then what they carry but cannot hold, then the rest.
    fn input(&mut self, parts: &'a [Part]) {
        let mut results = Vec::new();
        let mut carried = Vec::new();
        let mut said = Vec::new();
        for part in parts {
            match part {
                Part::ToolResult { call, content, is_error } => {
                    results.push(self.result(call.as_str(), content, *is_error, &mut carried));
                }
                Part::Text { text } if !text.is_empty() => said.push(Piece::text(text.into())),
                Part::Link { uri, title } => {
                    said.push(Piece::text(json::link(uri, title.as_deref())));
                }
                Part::Media { mime, data } => said.push(Piece::media(mime, data)),
                _ => {}
            }
        }
        match self.results.and_then(|index| self.contents.get_mut(index)) {
            Some(content) => content.parts.extend(results),
            None if results.is_empty() => {}
            None => {
                self.results = Some(self.contents.len());
                self.push("user", results);
            }
        }
        self.push("user", carried);
        self.push("user", said);
    }

    fn result(
        &self,
        call: &'a str,
        content: &'a [Part],
        is_error: bool,
        carried: &mut Vec<Piece<'a>>,
    ) -> Piece<'a> {
        let called = self.calls.get(call).copied().unwrap_or(Called { name: call, id: None });
        let mut lines: Vec<Cow<'a, str>> = Vec::new();
        let mut media = Vec::new();
        for part in content {
            match part {
                Part::Text { text } => lines.push(text.into()),
                Part::Link { uri, title } => lines.push(json::link(uri, title.as_deref())),
                Part::Media { mime, data } => media.push(Piece::media(mime, data)),
                _ => {}
            }
        }
        if self.generation != Generation::Third && !media.is_empty() {
            carried.push(Piece::text(format!("Part of the answer of {}:", called.name).into()));
            carried.append(&mut media);
        }
        let text = lines.join("\n");
        let response = if is_error { Response::Error(text) } else { Response::Output(text) };
        let name = plain::tool_name(called.name);
        let function_response = FunctionResponse { id: called.id, name, response, parts: media };
        Piece { function_response: Some(function_response), ..Piece::default() }
    }

    /// The provider refuses a content without parts.
    fn push(&mut self, role: &'static str, parts: Vec<Piece<'a>>) {
        if !parts.is_empty() {
            self.contents.push(Content { role, parts });
        }
    }
}

/// What is kept for the part that follows.
#[derive(Default)]
struct Note<'a> {
    signature: Option<&'a str>,
    id: Option<&'a str>,
}

impl<'a> Note<'a> {
    fn read(data: &'a Value) -> Self {
        let field = |key| data.get(key).and_then(Value::as_str);
        Self { signature: field(SIGNATURE), id: field(ID) }
    }
}
