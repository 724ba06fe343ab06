//! Anthropic's Messages: named events, a block for each piece, a ping after the first block began.

use serde_json::{Value, json};

use super::Context;
use crate::event::{Event, Piece};
use crate::reply::{Reply, Say, Stop};

pub(super) fn render(reply: &Reply, context: Context<'_>) -> Vec<Event> {
    let mut blocks = Blocks { reply, context, index: 0, events: Vec::new() };
    blocks.event(&json!({ "type": "message_start", "message": empty_message(reply, context) }));
    for part in &reply.parts {
        blocks.part(part);
    }
    blocks.event(&json!({
        "type": "message_delta",
        "delta": { "stop_reason": stop_reason(reply), "stop_sequence": null },
        "usage": usage(reply, reply.usage.output_tokens),
    }));
    blocks.event(&json!({ "type": "message_stop" }));
    blocks.events
}

struct Blocks<'a> {
    reply: &'a Reply,
    context: Context<'a>,
    index: usize,
    events: Vec<Event>,
}

impl Blocks<'_> {
    fn event(&mut self, data: &Value) {
        self.events.push(Event::typed(data, Piece::Frame));
    }

    fn part(&mut self, part: &Say) {
        match part {
            Say::Text(text) | Say::Refusal(text) => {
                self.start(&json!({ "type": "text", "text": "" }));
                self.deltas(text, Piece::Text, "text_delta", "text");
            }
            Say::Thought { text, signature } => {
                self.start(&json!({ "type": "thinking", "thinking": "", "signature": "" }));
                self.deltas(text, Piece::Thought, "thinking_delta", "thinking");
                if let Some(signature) = signature {
                    self.delta(Piece::Frame, "signature_delta", "signature", signature);
                }
            }
            Say::Redacted(data) => {
                self.start(&json!({ "type": "redacted_thinking", "data": data }));
            }
            Say::Call { id, name, arguments } => {
                let id = id.clone();
                let id = id.unwrap_or_else(|| self.context.part_id("toolu_", self.index));
                self.start(&json!({ "type": "tool_use", "id": id, "name": name, "input": {} }));
                self.delta(Piece::Frame, "input_json_delta", "partial_json", "");
                self.deltas(arguments, Piece::Call, "input_json_delta", "partial_json");
            }
        }
        self.event(&json!({ "type": "content_block_stop", "index": self.index }));
        self.index += 1;
    }

    fn start(&mut self, block: &Value) {
        let index = self.index;
        self.event(
            &json!({ "type": "content_block_start", "index": index, "content_block": block }),
        );
        if index == 0 {
            self.event(&json!({ "type": "ping" }));
        }
    }

    fn deltas(&mut self, text: &str, piece: Piece, kind: &str, key: &str) {
        for fragment in self.reply.fragments(text) {
            self.delta(piece, kind, key, fragment);
        }
    }

    fn delta(&mut self, piece: Piece, kind: &str, key: &str, text: &str) {
        let delta = json!({ "type": kind, key: text });
        let data = json!({ "type": "content_block_delta", "index": self.index, "delta": delta });
        self.events.push(Event::typed(&data, piece));
    }
}

fn empty_message(reply: &Reply, context: Context<'_>) -> Value {
    json!({
        "id": context.id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": context.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(reply, 1),
    })
}

fn stop_reason(reply: &Reply) -> &'static str {
    match reply.stop {
        Stop::Done if reply.has_calls() => "tool_use",
        Stop::Done => "end_turn",
        Stop::Length => "max_tokens",
        Stop::Refused => "refusal",
    }
}

/// Anthropic counts what was cached, and what was put into the cache, apart from the rest.
fn usage(reply: &Reply, output_tokens: u64) -> Value {
    let usage = reply.usage;
    let cache = usage.cached_tokens.saturating_add(usage.cache_write_tokens);
    let mut counts = json!({
        "input_tokens": usage.input_tokens.saturating_sub(cache),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": output_tokens,
    });
    // The first event comes before there are any.
    let has_thoughts = (1..=output_tokens).contains(&usage.thought_tokens);
    if let (true, Some(counts)) = (has_thoughts, counts.as_object_mut()) {
        let details = json!({ "thinking_tokens": usage.thought_tokens });
        counts.insert("output_tokens_details".to_owned(), details);
    }
    counts
}
