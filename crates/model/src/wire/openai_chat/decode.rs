//! Reads an answer.

use convoke_core::{Message, Part, Role, Usage};
use serde_json::{Value, json};

use super::calls::{Calls, Partial};
use super::usual::{self, Usual};
use crate::error::ModelErrorKind;
use crate::model::{Answer, Chunk, StopReason};
use crate::wire::openai::{error, number, text};
use crate::wire::{Complaint, Decoder};

#[derive(Default)]
pub(super) struct ChatDecoder {
    pieces: Vec<Piece>,
    calls: Calls,
    usage: Usage,
    stop: Option<StopReason>,
    refused: bool,
    /// Whether anything of an answer came at all.
    answered: bool,
    /// Whether `[DONE]` came. Some servers leave it out after the reason why they stopped.
    done: bool,
}

/// What was said, in order.
enum Piece {
    Text(String),
    Thought(String),
    /// A call, by its position.
    Call(usize),
}

impl Decoder for ChatDecoder {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), Complaint> {
        let data = data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if name != Some("error")
            && let Some(Usual { content, calls }) = usual::read(data)
        {
            self.answered = true;
            self.text(&content, chunks);
            for call in calls {
                self.call(call, chunks);
            }
            return Ok(());
        }
        let value: Value = serde_json::from_str(data).map_err(|_| error::unreadable(data))?;
        if name == Some("error") || value.get("error").is_some_and(|error| !error.is_null()) {
            return Err(error::of_event(&value));
        }
        if !value.is_object() {
            return Err(error::unreadable(data));
        }
        self.usage(&value);
        match value.pointer("/choices/0") {
            Some(choice) => self.choice(choice, chunks),
            None => Ok(()),
        }
    }

    fn is_complete(&self) -> bool {
        self.done || self.stop.is_some()
    }

    fn is_over(&self) -> bool {
        self.done
    }

    fn call_bytes(&self) -> usize {
        self.calls.bytes()
    }

    fn finish(self: Box<Self>) -> Result<Answer, Complaint> {
        if !self.is_complete() {
            return Err(error::unfinished());
        }
        if !self.answered {
            return Err(Complaint::malformed("the stream has no answer in it"));
        }
        let part = |piece| match piece {
            Piece::Text(text) => Some(Part::Text { text }),
            Piece::Thought(text) => Some(Part::Thought { text }),
            Piece::Call(position) => self.calls.call(position).map(Part::ToolCall),
        };
        let parts = self.pieces.into_iter().filter_map(part).collect();
        let stop = if self.refused { StopReason::Refused } else { StopReason::Done };
        Ok(Answer {
            message: Message { role: Role::Assistant, parts },
            usage: self.usage,
            stop: self.stop.filter(|stop| *stop != StopReason::Done).unwrap_or(stop),
        })
    }
}

impl ChatDecoder {
    fn choice(&mut self, choice: &Value, chunks: &mut Vec<Chunk>) -> Result<(), Complaint> {
        self.answered = true;
        // A server that does not stream puts the whole message into one event.
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            self.delta(delta, chunks);
        }
        match text(choice, "finish_reason") {
            "" => {}
            "error" => {
                let message = "the provider ended its answer with an error";
                return Err(Complaint::new(ModelErrorKind::Server, message));
            }
            reason => self.stop = Some(stop_reason(reason)),
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, chunks: &mut Vec<Chunk>) {
        // Some servers send the same thought under both names.
        let thought = ["reasoning_content", "reasoning"].map(|key| text(delta, key));
        if let Some(thought) = thought.into_iter().find(|thought| !thought.is_empty()) {
            self.thought(thought, chunks);
        }
        if let Some(parts) = delta.get("content").and_then(Value::as_array) {
            for part in parts {
                self.content(part, chunks);
            }
        } else {
            self.text(text(delta, "content"), chunks);
        }
        let refusal = text(delta, "refusal");
        self.refused |= !refusal.is_empty();
        self.text(refusal, chunks);
        if let Some(entries) = delta.get("tool_calls").and_then(Value::as_array) {
            for entry in entries {
                self.call(Partial::read(entry), chunks);
            }
        } else if let Some(function) = delta.get("function_call").filter(|call| call.is_object()) {
            self.call(Partial::read(&json!({ "index": 0, "function": function })), chunks);
        }
    }

    /// Mistral's reasoning models write a list: thoughts, then text.
    fn content(&mut self, part: &Value, chunks: &mut Vec<Chunk>) {
        match part.get("thinking") {
            Some(Value::Array(thoughts)) => {
                for thought in thoughts {
                    self.thought(text(thought, "text"), chunks);
                }
            }
            Some(Value::String(thought)) => self.thought(thought, chunks),
            _ => self.text(text(part, "text"), chunks),
        }
    }

    fn text(&mut self, more: &str, chunks: &mut Vec<Chunk>) {
        if more.is_empty() {
            return;
        }
        chunks.push(Chunk::Text(more.to_owned()));
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push_str(more),
            _ => self.pieces.push(Piece::Text(more.to_owned())),
        }
    }

    fn thought(&mut self, more: &str, chunks: &mut Vec<Chunk>) {
        if more.is_empty() {
            return;
        }
        chunks.push(Chunk::Thought(more.to_owned()));
        match self.pieces.last_mut() {
            Some(Piece::Thought(thought)) => thought.push_str(more),
            _ => self.pieces.push(Piece::Thought(more.to_owned())),
        }
    }

    fn call(&mut self, piece: Partial, chunks: &mut Vec<Chunk>) {
        let placed = self.calls.add(piece);
        if placed.is_new {
            self.pieces.push(Piece::Call(placed.position));
        }
        chunks.extend(placed.named.map(|name| Chunk::ToolCall { name }));
    }

    /// Reads what was used; the last word counts. Thoughts belong to what was received, but some
    /// providers leave them out there and count them in the total only.
    fn usage(&mut self, value: &Value) {
        let is_usage = |usage: &&Value| usage.is_object();
        let groq = || value.pointer("/x_groq/usage");
        let Some(usage) = value.get("usage").filter(is_usage).or_else(groq).filter(is_usage) else {
            return;
        };
        let input_tokens = number(usage, &["prompt_tokens"]);
        let beyond_input = number(usage, &["total_tokens"]).saturating_sub(input_tokens);
        let details = number(usage, &["prompt_tokens_details", "cached_tokens"]);
        self.usage = Usage {
            input_tokens,
            cached_tokens: details.max(number(usage, &["prompt_cache_hit_tokens"])),
            cache_write_tokens: number(usage, &["prompt_tokens_details", "cache_write_tokens"]),
            output_tokens: number(usage, &["completion_tokens"]).max(beyond_input),
            thought_tokens: number(usage, &["completion_tokens_details", "reasoning_tokens"]),
            estimated: false,
            cost: None,
        };
    }
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "length" | "max_tokens" | "model_length" => StopReason::Length,
        "content_filter" | "refusal" => StopReason::Refused,
        _ => StopReason::Done,
    }
}
