//! Reads an answer.

use convoke_core::{Message, Role, Usage};
use serde_json::Value;

use super::items::{Items, Kind, Reference};
use crate::model::{Answer, Chunk, StopReason};
use crate::wire::openai::{arguments, error, number, text};
use crate::wire::{Complaint, Decoder};

#[derive(Default)]
pub(super) struct ResponsesDecoder {
    items: Items,
    usage: Usage,
    stop: Option<StopReason>,
}

impl Decoder for ResponsesDecoder {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), Complaint> {
        let data = data.trim();
        if self.stop.is_some() || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let event: Value = serde_json::from_str(data).map_err(|_| error::unreadable(data))?;
        if !event.is_object() {
            return Err(error::unreadable(data));
        }
        let kind = Some(text(&event, "type")).filter(|kind| !kind.is_empty());
        self.read(kind.or(name).unwrap_or_default(), &event, chunks)
    }

    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    fn is_over(&self) -> bool {
        self.stop.is_some()
    }

    fn call_bytes(&self) -> usize {
        self.items.call_bytes()
    }

    fn finish(self: Box<Self>) -> Result<Answer, Complaint> {
        let stop = match self.stop {
            None => return Err(error::unfinished()),
            Some(StopReason::Done) if self.items.refused() => StopReason::Refused,
            Some(stop) => stop,
        };
        let message = Message { role: Role::Assistant, parts: self.items.into_parts() };
        Ok(Answer { message, usage: self.usage, stop })
    }
}

impl ResponsesDecoder {
    fn read(
        &mut self,
        kind: &str,
        event: &Value,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), Complaint> {
        let delta = text(event, "delta");
        match kind {
            "response.output_item.added" => self.added(event, chunks),
            "response.output_item.done" => self.done(event, chunks),
            "response.output_text.delta" => {
                if let Some(item) = self.items.current(&Reference::of_delta(Kind::Message, event)) {
                    item.append(delta, chunks);
                }
            }
            "response.refusal.delta" => {
                if let Some(item) = self.items.current(&Reference::of_delta(Kind::Message, event)) {
                    item.refuse(delta, chunks);
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                if let Some(item) = self.items.current(&Reference::of_delta(Kind::Reasoning, event))
                {
                    item.append(delta, chunks);
                }
            }
            "response.reasoning_summary_part.added" => {
                if let Some(item) = self.items.current(&Reference::of_delta(Kind::Reasoning, event))
                {
                    item.new_paragraph(chunks);
                }
            }
            "response.function_call_arguments.delta" => {
                if let Some(item) = self.items.current(&Reference::of_delta(Kind::Call, event)) {
                    item.append(&arguments::raw(event.get("delta")), chunks);
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(item) = self.items.current(&Reference::of_delta(Kind::Call, event)) {
                    item.announce(event, chunks);
                    item.settle_text(&arguments::raw(event.get("arguments")), chunks);
                }
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                let response = event.get("response").unwrap_or(&Value::Null);
                self.whole(response, chunks);
                self.stop = Some(stop_reason(kind, response)?);
            }
            "response.failed" | "response.cancelled" => {
                return Err(failure(event.get("response").unwrap_or(event)));
            }
            "error" => return Err(error::of_event(event)),
            _ if event.get("error").is_some_and(|error| !error.is_null()) => {
                return Err(error::of_event(event));
            }
            _ => {}
        }
        Ok(())
    }

    fn added(&mut self, event: &Value, chunks: &mut Vec<Chunk>) {
        let item = event.get("item").unwrap_or(&Value::Null);
        let index = event.get("output_index").and_then(Value::as_u64);
        if let Some(slot) = self.items.announced(&Reference::of_item(item, index)) {
            slot.announce(item, chunks);
        }
    }

    fn done(&mut self, event: &Value, chunks: &mut Vec<Chunk>) {
        let item = event.get("item").unwrap_or(&Value::Null);
        let index = event.get("output_index").and_then(Value::as_u64);
        if let Some(slot) = self.items.current(&Reference::of_item(item, index)) {
            slot.settle(item, chunks);
        }
    }

    /// Takes the whole response.
    fn whole(&mut self, response: &Value, chunks: &mut Vec<Chunk>) {
        let output = response.get("output").and_then(Value::as_array).into_iter().flatten();
        for (position, item) in output.enumerate() {
            let index = u64::try_from(position).ok();
            if let Some(slot) = self.items.placed(position, &Reference::of_item(item, index)) {
                slot.settle(item, chunks);
            }
        }
        if let Some(usage) = response.get("usage") {
            self.usage = Usage {
                input_tokens: number(usage, &["input_tokens"]),
                cached_tokens: number(usage, &["input_tokens_details", "cached_tokens"]),
                cache_write_tokens: number(usage, &["input_tokens_details", "cache_write_tokens"]),
                output_tokens: number(usage, &["output_tokens"]),
                thought_tokens: number(usage, &["output_tokens_details", "reasoning_tokens"]),
                estimated: false,
                cost: None,
            };
        }
    }
}

/// Says why the model stopped: by the reason given, else by the status, else by the event's name.
fn stop_reason(event: &str, response: &Value) -> Result<StopReason, Complaint> {
    let reason = response.get("incomplete_details").map(|details| text(details, "reason"));
    match (reason.unwrap_or_default(), text(response, "status")) {
        (_, "failed" | "cancelled") => Err(failure(response)),
        ("content_filter", _) => Ok(StopReason::Refused),
        ("max_output_tokens", _) | (_, "incomplete") => Ok(StopReason::Length),
        _ if event == "response.incomplete" => Ok(StopReason::Length),
        _ => Ok(StopReason::Done),
    }
}

/// Reads why a response failed.
fn failure(response: &Value) -> Complaint {
    match response.get("error") {
        Some(error @ Value::Object(_)) => error::of_event(error),
        _ => error::of_event(&Value::String("the provider gave up on the answer".to_owned())),
    }
}
