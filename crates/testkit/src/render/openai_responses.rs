//! `OpenAI`'s Responses: named and numbered events, an item for each piece, the whole response at the end.

use serde_json::{Value, json};

use super::{CREATED, Context};
use crate::event::{Event, Piece};
use crate::reply::{Reply, Say, Stop};

pub(super) fn render(reply: &Reply, context: Context<'_>) -> Vec<Event> {
    let mut items = Items { reply, context, output: Vec::new(), events: Vec::new() };
    let begun = response(context, "in_progress", &[], &Value::Null, &Value::Null);
    items.event("response.created", json!({ "response": begun }), Piece::Frame);
    items.event("response.in_progress", json!({ "response": begun }), Piece::Frame);
    for part in &reply.parts {
        items.part(part);
    }
    let (status, incomplete) = match reply.stop {
        Stop::Done => ("completed", Value::Null),
        Stop::Length => ("incomplete", json!({ "reason": "max_output_tokens" })),
        Stop::Refused => ("incomplete", json!({ "reason": "content_filter" })),
    };
    let whole = response(context, status, &items.output, &incomplete, &usage(reply));
    items.event(&format!("response.{status}"), json!({ "response": whole }), Piece::Frame);
    items.events
}

/// Writes the event that ends a response that failed.
pub(crate) fn failed_response(
    context: Context<'_>,
    sequence_number: usize,
    code: &str,
    message: &str,
) -> Event {
    let mut failed = response(context, "failed", &[], &Value::Null, &Value::Null);
    if let Some(failed) = failed.as_object_mut() {
        failed.insert("error".to_owned(), json!({ "code": code, "message": message }));
    }
    let data = json!({
        "type": "response.failed",
        "sequence_number": sequence_number,
        "response": failed,
    });
    Event::typed(&data, Piece::Frame)
}

struct Items<'a> {
    reply: &'a Reply,
    context: Context<'a>,
    output: Vec<Value>,
    events: Vec<Event>,
}

impl Items<'_> {
    fn event(&mut self, kind: &str, mut data: Value, piece: Piece) {
        if let Some(data) = data.as_object_mut() {
            data.insert("type".to_owned(), kind.into());
            data.insert("sequence_number".to_owned(), self.events.len().into());
        }
        self.events.push(Event::typed(&data, piece));
    }

    /// Adds an event about the item that is being written.
    fn about(&mut self, kind: &str, id: &str, mut data: Value, piece: Piece) {
        if let Some(data) = data.as_object_mut() {
            data.insert("item_id".to_owned(), id.into());
            data.insert("output_index".to_owned(), self.output.len().into());
        }
        self.event(kind, data, piece);
    }

    fn added(&mut self, item: &Value) {
        let index = self.output.len();
        let data = json!({ "output_index": index, "item": item });
        self.event("response.output_item.added", data, Piece::Frame);
    }

    fn done(&mut self, item: Value) {
        let data = json!({ "output_index": self.output.len(), "item": item });
        self.event("response.output_item.done", data, Piece::Frame);
        self.output.push(item);
    }

    fn part(&mut self, part: &Say) {
        match part {
            Say::Text(text) => {
                let empty =
                    json!({ "type": "output_text", "text": "", "annotations": [], "logprobs": [] });
                let full = json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] });
                self.message(text, "output_text", "text", &empty, &full);
            }
            Say::Refusal(text) => {
                let empty = json!({ "type": "refusal", "refusal": "" });
                let full = json!({ "type": "refusal", "refusal": text });
                self.message(text, "refusal", "refusal", &empty, &full);
            }
            Say::Thought { text, signature } => self.reasoning(text, signature.as_deref()),
            Say::Redacted(data) => self.reasoning("", Some(data)),
            Say::Call { id, name, arguments } => self.call(id.as_deref(), name, arguments),
        }
    }

    fn message(&mut self, text: &str, kind: &str, key: &str, empty: &Value, full: &Value) {
        let id = self.context.part_id("msg_", self.output.len());
        let item = |status: &str, content: Value| json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": content });
        let is_text = kind == "output_text";
        self.added(&item("in_progress", json!([])));
        let part = json!({ "content_index": 0, "part": empty });
        self.about("response.content_part.added", &id, part, Piece::Frame);
        for fragment in self.reply.fragments(text) {
            let mut delta = json!({ "content_index": 0, "delta": fragment });
            add_logprobs(&mut delta, is_text);
            self.about(&format!("response.{kind}.delta"), &id, delta, Piece::Text);
        }
        let mut done = json!({ "content_index": 0, key: text });
        add_logprobs(&mut done, is_text);
        self.about(&format!("response.{kind}.done"), &id, done, Piece::Frame);
        let part = json!({ "content_index": 0, "part": full });
        self.about("response.content_part.done", &id, part, Piece::Frame);
        self.done(item("completed", json!([full])));
    }

    fn reasoning(&mut self, text: &str, encrypted: Option<&str>) {
        let id = self.context.part_id("rs_", self.output.len());
        self.added(&json!({ "id": id, "type": "reasoning", "summary": [] }));
        let mut summary = Vec::new();
        if !text.is_empty() {
            let part = |text: &str| json!({ "type": "summary_text", "text": text });
            let data = json!({ "summary_index": 0, "part": part("") });
            self.about("response.reasoning_summary_part.added", &id, data, Piece::Frame);
            for fragment in self.reply.fragments(text) {
                let data = json!({ "summary_index": 0, "delta": fragment });
                self.about("response.reasoning_summary_text.delta", &id, data, Piece::Thought);
            }
            let data = json!({ "summary_index": 0, "text": text });
            self.about("response.reasoning_summary_text.done", &id, data, Piece::Frame);
            let data = json!({ "summary_index": 0, "part": part(text) });
            self.about("response.reasoning_summary_part.done", &id, data, Piece::Frame);
            summary.push(part(text));
        }
        let mut item = json!({ "id": id, "type": "reasoning", "summary": summary });
        if let (Some(encrypted), Some(item)) = (encrypted, item.as_object_mut()) {
            item.insert("encrypted_content".to_owned(), encrypted.into());
        }
        self.done(item);
    }

    fn call(&mut self, call_id: Option<&str>, name: &str, arguments: &str) {
        let index = self.output.len();
        let id = self.context.part_id("fc_", index);
        let call_id = call_id.map(str::to_owned);
        let call_id = call_id.unwrap_or_else(|| self.context.part_id("call_", index));
        let item = |status: &str, arguments: &str| {
            json!({
                "id": id,
                "type": "function_call",
                "status": status,
                "call_id": call_id,
                "name": name,
                "arguments": arguments,
            })
        };
        self.added(&item("in_progress", ""));
        for fragment in self.reply.fragments(arguments) {
            let data = json!({ "delta": fragment });
            self.about("response.function_call_arguments.delta", &id, data, Piece::Call);
        }
        let data = json!({ "arguments": arguments });
        self.about("response.function_call_arguments.done", &id, data, Piece::Frame);
        self.done(item("completed", arguments));
    }
}

fn add_logprobs(data: &mut Value, is_text: bool) {
    if let (true, Some(data)) = (is_text, data.as_object_mut()) {
        data.insert("logprobs".to_owned(), json!([]));
    }
}

fn response(
    context: Context<'_>,
    status: &str,
    output: &[Value],
    incomplete: &Value,
    usage: &Value,
) -> Value {
    json!({
        "id": context.id("resp_"),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": incomplete,
        "instructions": null,
        "metadata": {},
        "model": context.model,
        "output": output,
        "parallel_tool_calls": true,
        "store": false,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage,
    })
}

fn usage(reply: &Reply) -> Value {
    let usage = reply.usage;
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": { "reasoning_tokens": usage.thought_tokens },
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    })
}
