//! Reads an answer.

use convoke_core::{Message, Part, Role, ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ID, NAME, SIGNATURE, complaint};
use crate::error::ModelErrorKind;
use crate::model::{Answer, Chunk, StopReason};
use crate::wire::json::{event, shallow, words};
use crate::wire::{Complaint, Decoder};

/// What is known of an answer so far.
#[derive(Default)]
pub(super) struct Reader {
    parts: Vec<Part>,
    /// Whether the last part came with a signature, so that nothing may be added to it.
    is_sealed: bool,
    tokens: Tokens,
    stop: Option<StopReason>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(default)]
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Vec<Piece>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    thought_signature: Option<String>,
    function_call: Option<FunctionCall>,
    inline_data: Option<Blob>,
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
    name: String,
    #[serde(default)]
    args: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blob {
    mime_type: String,
    data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

/// Counts of everything so far; the last ones count.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Tokens {
    #[serde(rename = "promptTokenCount")]
    prompt: Option<u64>,
    #[serde(rename = "toolUsePromptTokenCount")]
    tool_use: Option<u64>,
    #[serde(rename = "cachedContentTokenCount")]
    cached: Option<u64>,
    #[serde(rename = "candidatesTokenCount")]
    spoken: Option<u64>,
    #[serde(rename = "thoughtsTokenCount")]
    thoughts: Option<u64>,
}

impl Decoder for Reader {
    fn event(
        &mut self,
        _: Option<&str>,
        data: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), Complaint> {
        if data.trim().is_empty() {
            return Ok(());
        }
        let event: Event = event(data)?;
        if let Some(error) = event.error {
            return Err(complaint(&error, None));
        }
        if let Some(tokens) = event.usage_metadata {
            self.tokens.replace(tokens);
        }
        if event.prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some()) {
            self.stop = Some(StopReason::Refused);
        }
        // More than one candidate has to be asked for, which nobody does here.
        let Some(candidate) = event.candidates.into_iter().next() else { return Ok(()) };
        for piece in candidate.content.into_iter().flat_map(|content| content.parts) {
            self.piece(piece, chunks);
        }
        if let Some(reason) = candidate.finish_reason {
            let message = candidate.finish_message.unwrap_or_default();
            self.stop = Some(stop_reason(&reason, &message)?);
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    /// The provider has no last word: what was used may come after the reason why it stopped.
    fn is_over(&self) -> bool {
        false
    }

    fn call_bytes(&self) -> usize {
        let bytes = |part: &Part| match part {
            Part::ToolCall(call) => call.name.len() + call.arguments.to_string().len(),
            _ => 0,
        };
        self.parts.iter().map(bytes).sum()
    }

    fn finish(self: Box<Self>) -> Result<Answer, Complaint> {
        let stop = self.stop.ok_or_else(|| {
            let message = "the answer ended before the provider said so";
            Complaint::new(ModelErrorKind::Cut, message)
        })?;
        Ok(Answer {
            message: Message { role: Role::Assistant, parts: self.parts },
            usage: self.tokens.usage(),
            stop,
        })
    }
}

impl Reader {
    fn piece(&mut self, piece: Piece, chunks: &mut Vec<Chunk>) {
        let signature = piece.thought_signature.filter(|signature| !signature.is_empty());
        if let Some(call) = piece.function_call {
            chunks.push(Chunk::ToolCall { name: call.name.clone() });
            let id = call.id.filter(|id| !id.is_empty());
            self.note(signature, id.clone());
            let arguments =
                if call.args.is_null() { Map::new().into() } else { shallow(call.args) };
            let call = ToolCall::new(id.unwrap_or_default(), call.name, arguments);
            self.parts.push(Part::ToolCall(call));
        } else if let Some(Blob { mime_type, data }) = piece.inline_data {
            self.note(signature, None);
            self.parts.push(Part::Media { mime: mime_type, data });
        } else {
            let text = piece.text.unwrap_or_default();
            if !text.is_empty() {
                chunks.push(show(piece.thought, text.clone()));
            }
            self.text(piece.thought, text, signature);
        }
    }

    /// Adds to the last part if that is the same kind of text, unless one of the two is signed. A
    /// signature may come with an empty text of its own; it is kept.
    fn text(&mut self, is_thought: bool, more: String, signature: Option<String>) {
        if signature.is_none() {
            if more.is_empty() {
                return;
            }
            match self.parts.last_mut() {
                Some(Part::Text { text }) if !is_thought && !self.is_sealed => {
                    return text.push_str(&more);
                }
                Some(Part::Thought { text }) if is_thought && !self.is_sealed => {
                    return text.push_str(&more);
                }
                _ => {}
            }
        }
        self.note(signature, None);
        self.parts.push(if is_thought {
            Part::Thought { text: more }
        } else {
            Part::Text { text: more }
        });
    }

    /// Keeps what belongs to the part that comes next.
    fn note(&mut self, signature: Option<String>, id: Option<String>) {
        self.is_sealed = signature.is_some();
        let fields = [(SIGNATURE, signature), (ID, id)];
        let data: Map<String, Value> = fields
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), Value::String(value?))))
            .collect();
        if !data.is_empty() {
            self.parts.push(Part::Opaque { provider: NAME.to_owned(), data: data.into() });
        }
    }
}

fn show(is_thought: bool, text: String) -> Chunk {
    if is_thought { Chunk::Thought(text) } else { Chunk::Text(text) }
}

/// There are two ways to end well. Of the others, those that speak of the model's own output being
/// unusable, or of our request, are errors; the rest are refusals, also the ones not known here, since an
/// answer that was broken off must not look whole. What a model wrote badly once it may write well when
/// asked again.
fn stop_reason(reason: &str, message: &str) -> Result<StopReason, Complaint> {
    let (kind, repeatable) = match reason {
        "STOP" => return Ok(StopReason::Done),
        "MAX_TOKENS" => return Ok(StopReason::Length),
        "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" => {
            (ModelErrorKind::Malformed, true)
        }
        "TOO_MANY_TOOL_CALLS" => (ModelErrorKind::Malformed, false),
        "MISSING_THOUGHT_SIGNATURE" => (ModelErrorKind::Rejected, false),
        _ => return Ok(StopReason::Refused),
    };
    let message = match message {
        "" => format!("the answer ended with {reason}"),
        message => format!("the answer ended with {reason}: {}", words(message)),
    };
    Err(Complaint { kind, message, repeatable })
}

impl Tokens {
    fn replace(&mut self, later: Self) {
        *self = Self {
            prompt: later.prompt.or(self.prompt),
            tool_use: later.tool_use.or(self.tool_use),
            cached: later.cached.or(self.cached),
            spoken: later.spoken.or(self.spoken),
            thoughts: later.thoughts.or(self.thoughts),
        };
    }

    /// The provider counts cached tokens as part of the prompt, but thoughts beside the answer.
    fn usage(self) -> Usage {
        let sum =
            |one: Option<u64>, two: Option<u64>| one.unwrap_or(0).saturating_add(two.unwrap_or(0));
        Usage {
            input_tokens: sum(self.prompt, self.tool_use),
            cached_tokens: self.cached.unwrap_or(0),
            cache_write_tokens: 0,
            output_tokens: sum(self.spoken, self.thoughts),
            thought_tokens: self.thoughts.unwrap_or(0),
            estimated: false,
            cost: None,
        }
    }
}
