//! Gemini: unnamed chunks, each a whole response of its own; calls come whole; no closing event.
//!
//! The signature of a thought is not on the thought but on the first call after it, or, if there is none,
//! on the empty text part that ends the answer.

use serde_json::{Value, json};

use super::Context;
use crate::event::{Event, Piece};
use crate::reply::{Reply, Say, Stop};

pub(super) fn render(reply: &Reply, context: Context<'_>) -> Vec<Event> {
    let mut chunks =
        Chunks { reply, context, signature: None, malformed: false, events: Vec::new() };
    if reply.parts.is_empty() && reply.stop == Stop::Refused {
        chunks.blocked();
        return chunks.events;
    }
    for part in &reply.parts {
        chunks.part(part);
    }
    let mut last = json!({ "text": "" });
    chunks.sign(&mut last);
    let finish = match reply.stop {
        Stop::Done if chunks.malformed => "MALFORMED_FUNCTION_CALL",
        Stop::Done => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::Refused => "SAFETY",
    };
    chunks.candidate(&last, Some(finish), Piece::Frame);
    chunks.events
}

struct Chunks<'a> {
    reply: &'a Reply,
    context: Context<'a>,
    signature: Option<&'a str>,
    malformed: bool,
    events: Vec<Event>,
}

impl<'a> Chunks<'a> {
    fn part(&mut self, part: &'a Say) {
        match part {
            Say::Text(text) | Say::Refusal(text) => {
                for fragment in self.reply.fragments(text) {
                    self.candidate(&json!({ "text": fragment }), None, Piece::Text);
                }
            }
            Say::Thought { text, signature } => {
                for fragment in self.reply.fragments(text) {
                    let part = json!({ "text": fragment, "thought": true });
                    self.candidate(&part, None, Piece::Thought);
                }
                self.signature = signature.as_deref();
            }
            Say::Redacted(_) => {}
            Say::Call { id, name, arguments } => self.call(id.as_deref(), name, arguments),
        }
    }

    fn call(&mut self, id: Option<&str>, name: &str, arguments: &str) {
        let Ok(arguments @ Value::Object(_)) = serde_json::from_str(arguments) else {
            self.malformed = true;
            return;
        };
        let mut call = json!({ "name": name, "args": arguments });
        if let (Some(id), Some(call)) = (id, call.as_object_mut()) {
            call.insert("id".to_owned(), id.into());
        }
        let mut part = json!({ "functionCall": call });
        self.sign(&mut part);
        self.candidate(&part, None, Piece::Call);
    }

    /// Puts the signature that waits for a part, if there is one, on this part.
    fn sign(&mut self, part: &mut Value) {
        if let (Some(part), Some(signature)) = (part.as_object_mut(), self.signature.take()) {
            part.insert("thoughtSignature".to_owned(), signature.into());
        }
    }

    fn candidate(&mut self, part: &Value, finish: Option<&str>, piece: Piece) {
        let mut candidate = json!({ "content": { "parts": [part], "role": "model" }, "index": 0 });
        if let (Some(finish), Some(candidate)) = (finish, candidate.as_object_mut()) {
            candidate.insert("finishReason".to_owned(), finish.into());
        }
        self.chunk("candidates", &json!([candidate]), finish.is_some(), piece);
    }

    fn blocked(&mut self) {
        let feedback = json!({ "blockReason": "PROHIBITED_CONTENT" });
        self.chunk("promptFeedback", &feedback, false, Piece::Frame);
    }

    fn chunk(&mut self, key: &str, value: &Value, is_last: bool, piece: Piece) {
        let chunk = json!({
            key: value,
            "usageMetadata": usage(self.reply, is_last),
            "modelVersion": self.context.model,
            "responseId": self.context.id("resp"),
        });
        self.events.push(Event::unnamed(&chunk, piece));
    }
}

/// Gemini counts thoughts apart from what it says; the full count comes with the last chunk.
fn usage(reply: &Reply, is_last: bool) -> Value {
    let usage = reply.usage;
    let prompt = usage.input_tokens;
    if !is_last {
        return json!({ "promptTokenCount": prompt, "totalTokenCount": prompt });
    }
    let mut counts = json!({
        "promptTokenCount": prompt,
        "candidatesTokenCount": usage.output_tokens.saturating_sub(usage.thought_tokens),
        "totalTokenCount": prompt.saturating_add(usage.output_tokens),
    });
    let optional = [
        ("cachedContentTokenCount", usage.cached_tokens),
        ("thoughtsTokenCount", usage.thought_tokens),
    ];
    for (key, count) in optional.into_iter().filter(|(_, count)| *count > 0) {
        if let Some(counts) = counts.as_object_mut() {
            counts.insert(key.to_owned(), count.into());
        }
    }
    counts
}
