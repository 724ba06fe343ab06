//! `OpenAI`'s chat completions: unnamed chunks, a usage chunk if it was asked for, `[DONE]`.
//!
//! Thoughts go into `reasoning_content`, as servers with open models send them; `OpenAI` sends none.

use serde_json::{Value, json};

use super::{CREATED, Context};
use crate::event::{Event, Piece};
use crate::reply::{Reply, Say, Stop};

pub(super) fn render(reply: &Reply, context: Context<'_>) -> Vec<Event> {
    let mut chunks = Chunks { context, events: Vec::new() };
    chunks.delta(json!({ "role": "assistant", "content": "", "refusal": null }), Piece::Frame);
    let mut calls = 0;
    for part in &reply.parts {
        match part {
            Say::Text(text) => {
                chunks.fragments(reply, text, Piece::Text, |text| json!({ "content": text }));
            }
            Say::Refusal(text) => {
                chunks.fragments(reply, text, Piece::Text, |text| json!({ "refusal": text }));
            }
            Say::Thought { text, .. } => {
                let delta = |text: &str| json!({ "reasoning_content": text });
                chunks.fragments(reply, text, Piece::Thought, delta);
            }
            Say::Redacted(_) => {}
            Say::Call { id, name, arguments } => {
                let id = id.clone().unwrap_or_else(|| context.part_id("call_", calls));
                let function = json!({ "name": name, "arguments": "" });
                let call =
                    json!({ "index": calls, "id": id, "type": "function", "function": function });
                chunks.delta(json!({ "tool_calls": [call] }), Piece::Frame);
                chunks.fragments(reply, arguments, Piece::Call, |arguments| {
                    let function = json!({ "arguments": arguments });
                    json!({ "tool_calls": [{ "index": calls, "function": function }] })
                });
                calls += 1;
            }
        }
    }
    chunks.push(
        &json!([choice(&json!({}), &json!(finish_reason(reply)))]),
        &Value::Null,
        Piece::Frame,
    );
    if context.include_usage {
        chunks.push(&json!([]), &usage(reply), Piece::Frame);
    }
    chunks.events.push(Event::unnamed(&"[DONE]", Piece::Frame));
    chunks.events
}

struct Chunks<'a> {
    context: Context<'a>,
    events: Vec<Event>,
}

impl Chunks<'_> {
    fn push(&mut self, choices: &Value, usage: &Value, piece: Piece) {
        let mut chunk = json!({
            "id": self.context.id("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.context.model,
            "service_tier": "default",
            "system_fingerprint": "fp_testkit",
            "choices": choices,
        });
        if let (true, Some(chunk)) = (self.context.include_usage, chunk.as_object_mut()) {
            chunk.insert("usage".to_owned(), usage.clone());
        }
        self.events.push(Event::unnamed(&chunk, piece));
    }

    #[expect(clippy::needless_pass_by_value, reason = "every caller makes the delta for this")]
    fn delta(&mut self, delta: Value, piece: Piece) {
        self.push(&json!([choice(&delta, &Value::Null)]), &Value::Null, piece);
    }

    fn fragments(
        &mut self,
        reply: &Reply,
        text: &str,
        piece: Piece,
        delta: impl Fn(&str) -> Value,
    ) {
        for fragment in reply.fragments(text) {
            self.delta(delta(fragment), piece);
        }
    }
}

fn choice(delta: &Value, finish_reason: &Value) -> Value {
    json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason })
}

fn finish_reason(reply: &Reply) -> &'static str {
    match reply.stop {
        Stop::Done if reply.has_calls() => "tool_calls",
        Stop::Done => "stop",
        Stop::Length => "length",
        Stop::Refused => "content_filter",
    }
}

fn usage(reply: &Reply) -> Value {
    let usage = reply.usage;
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.thought_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}
