//! Reads an answer.

use convoke_core::{Message, Part, Role, ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{NAME, complaint};
use crate::error::ModelErrorKind;
use crate::model::{Answer, Chunk, StopReason};
use crate::wire::json::{arguments, event, shallow};
use crate::wire::{Complaint, Decoder};

/// What is known of an answer so far.
#[derive(Default)]
pub(super) struct Reader {
    /// The blocks with their indices, in the order they began.
    blocks: Vec<(u64, Block)>,
    tokens: Tokens,
    stop: Option<String>,
    is_complete: bool,
}

enum Block {
    Text(String),
    Thinking { text: String, signature: String },
    Redacted(String),
    ToolUse { id: String, name: String, input: Value, json: String },
    Unknown,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Started,
    },
    ContentBlockStart {
        index: u64,
        content_block: BlockStart,
    },
    ContentBlockDelta {
        index: u64,
        delta: More,
    },
    MessageDelta {
        delta: Ending,
        #[serde(default)]
        usage: Option<Tokens>,
    },
    MessageStop,
    Error {
        error: Error,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Started {
    #[serde(default)]
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockStart {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        #[serde(default)]
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum More {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Ending {
    #[serde(default)]
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Error {
    #[serde(rename = "type", default)]
    word: String,
    #[serde(default)]
    message: String,
}

/// Counts, of which every event may say some. They only grow, so the largest is the last.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Tokens {
    #[serde(rename = "input_tokens")]
    fresh: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    written: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    cached: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: Option<u64>,
    #[serde(rename = "output_tokens_details")]
    details: Option<Details>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
struct Details {
    #[serde(rename = "thinking_tokens")]
    thoughts: Option<u64>,
}

impl Decoder for Reader {
    fn event(
        &mut self,
        _: Option<&str>,
        data: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), Complaint> {
        if self.is_complete || data.trim().is_empty() {
            return Ok(());
        }
        match event(data)? {
            Event::MessageStart { message } => self.tokens.raise(message.usage),
            Event::ContentBlockStart { index, content_block } => {
                self.blocks.push((index, begin(content_block, chunks)));
            }
            Event::ContentBlockDelta { index, delta } => {
                let block = self.blocks.iter_mut().rev().find(|(known, _)| *known == index);
                let (_, block) = block.ok_or_else(|| {
                    Complaint::malformed(format!("more of block {index}, which never began"))
                })?;
                block.grow(delta, chunks);
            }
            Event::MessageDelta { delta, usage } => {
                self.stop = delta.stop_reason.or(self.stop.take());
                self.tokens.raise(usage);
            }
            Event::MessageStop => self.is_complete = true,
            Event::Error { error } => return Err(complaint(&error.word, &error.message, None)),
            Event::Other => {}
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn is_over(&self) -> bool {
        self.is_complete
    }

    fn call_bytes(&self) -> usize {
        self.blocks.iter().map(|(_, block)| block.call_bytes()).sum()
    }

    fn finish(self: Box<Self>) -> Result<Answer, Complaint> {
        if !self.is_complete {
            let message = "the answer ended before the provider said so";
            return Err(Complaint::new(ModelErrorKind::Cut, message));
        }
        let mut parts = Vec::new();
        for (_, block) in self.blocks {
            block.finish(&mut parts);
        }
        Ok(Answer {
            message: Message { role: Role::Assistant, parts },
            usage: self.tokens.usage(),
            stop: stop_reason(self.stop.as_deref()),
        })
    }
}

/// Reasons that are not known here are taken for a usual end: the provider adds them for features that
/// nobody asks for here.
fn stop_reason(word: Option<&str>) -> StopReason {
    match word {
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
        Some("refusal") => StopReason::Refused,
        _ => StopReason::Done,
    }
}

fn begin(start: BlockStart, chunks: &mut Vec<Chunk>) -> Block {
    match start {
        BlockStart::Text { text } => {
            show(Chunk::Text, &text, chunks);
            Block::Text(text)
        }
        BlockStart::Thinking { thinking, signature } => {
            show(Chunk::Thought, &thinking, chunks);
            Block::Thinking { text: thinking, signature }
        }
        BlockStart::RedactedThinking { data } => Block::Redacted(data),
        BlockStart::ToolUse { id, name, input } => {
            chunks.push(Chunk::ToolCall { name: name.clone() });
            Block::ToolUse { id, name, input, json: String::new() }
        }
        BlockStart::Other => Block::Unknown,
    }
}

fn show(chunk: fn(String) -> Chunk, text: &str, chunks: &mut Vec<Chunk>) {
    if !text.is_empty() {
        chunks.push(chunk(text.to_owned()));
    }
}

impl Block {
    fn grow(&mut self, delta: More, chunks: &mut Vec<Chunk>) {
        match (self, delta) {
            (Self::Text(text), More::TextDelta { text: more }) => {
                text.push_str(&more);
                show(Chunk::Text, &more, chunks);
            }
            (Self::Thinking { text, .. }, More::ThinkingDelta { thinking: more }) => {
                text.push_str(&more);
                show(Chunk::Thought, &more, chunks);
            }
            (Self::Thinking { signature, .. }, More::SignatureDelta { signature: more }) => {
                signature.push_str(&more);
            }
            (Self::ToolUse { json, .. }, More::InputJsonDelta { partial_json }) => {
                json.push_str(&partial_json);
            }
            _ => {}
        }
    }

    fn call_bytes(&self) -> usize {
        match self {
            Self::ToolUse { name, input, json, .. } if json.is_empty() => {
                name.len() + input.to_string().len()
            }
            Self::ToolUse { name, json, .. } => name.len() + json.len(),
            _ => 0,
        }
    }

    fn finish(self, parts: &mut Vec<Part>) {
        match self {
            Self::Text(text) if text.is_empty() => {}
            Self::Text(text) => parts.push(Part::Text { text }),
            Self::Thinking { text, signature } => {
                if !signature.is_empty() {
                    parts.push(own(
                        json!({ "type": "thinking", "thinking": text, "signature": signature }),
                    ));
                }
                if !text.is_empty() {
                    parts.push(Part::Thought { text });
                }
            }
            Self::Redacted(data) => {
                parts.push(own(json!({ "type": "redacted_thinking", "data": data })));
            }
            Self::ToolUse { id, name, input, json } => {
                // Some servers send the arguments whole at the start.
                let arguments = match input {
                    Value::Object(_) if json.is_empty() => shallow(input),
                    _ => arguments(&json),
                };
                parts.push(Part::ToolCall(ToolCall::new(id, name, arguments)));
            }
            Self::Unknown => {}
        }
    }
}

fn own(data: Value) -> Part {
    Part::Opaque { provider: NAME.to_owned(), data }
}

impl Tokens {
    fn raise(&mut self, later: Option<Self>) {
        let later = later.unwrap_or_default();
        *self = Self {
            fresh: self.fresh.max(later.fresh),
            written: self.written.max(later.written),
            cached: self.cached.max(later.cached),
            output: self.output.max(later.output),
            details: self.details.max(later.details),
        };
    }

    /// The provider counts what was cached, and what it puts into its cache, beside the rest of the input.
    fn usage(self) -> Usage {
        let cached_tokens = self.cached.unwrap_or(0);
        let cache_write_tokens = self.written.unwrap_or(0);
        let fresh = self.fresh.unwrap_or(0);
        Usage {
            input_tokens: fresh.saturating_add(cached_tokens).saturating_add(cache_write_tokens),
            cached_tokens,
            cache_write_tokens,
            output_tokens: self.output.unwrap_or(0),
            thought_tokens: self.details.and_then(|details| details.thoughts).unwrap_or(0),
            estimated: false,
            cost: None,
        }
    }
}
