//! The end of a call: one result, one event, one count.
//!
//! A [`Ticket`] is made when a call is requested and used up when it ends. If it is dropped instead,
//! because the caller gave up waiting, the call is recorded as cancelled. So no request is left open.

use std::borrow::Cow;
use std::sync::Arc;

use convoke_core::{
    Artifact, CallId, CallOutcome, Display, ErrorKind, EventBody, Millis, Part, Timestamp,
    ToolError, ToolResult,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Parts;
use crate::registry::Entry;
use crate::tool::ToolOutput;
use crate::truncate::{cut_parts, floor_char_boundary};

/// A call under way.
pub(super) struct Ticket {
    parts: Arc<Parts>,
    call: CallId,
    tool_name: String,
    entry: Option<Arc<Entry>>,
    started_at: Timestamp,
    started: Instant,
    open: bool,
}

impl Ticket {
    /// Records the request. If that is impossible, the call must not go on.
    pub(super) fn open(
        parts: &Arc<Parts>,
        call: CallId,
        tool_name: String,
        params: &Value,
    ) -> Result<Self, Box<ToolResult>> {
        let body = EventBody::ToolCallRequested {
            tool_name: tool_name.clone(),
            params: for_event(params, parts.limits.max_event_bytes),
        };
        let recorded = parts.recorder.record(Some(&call), body);
        let mut ticket = Self {
            started_at: parts.context.clock().now(),
            started: Instant::now(),
            parts: Arc::clone(parts),
            call,
            tool_name,
            entry: None,
            open: true,
        };
        match recorded {
            Ok(()) => Ok(ticket),
            Err(error) => {
                ticket.open = false;
                let error = ToolError::unavailable(
                    "the call was not started, because it could not be recorded",
                )
                .caused_by(&error);
                Err(Box::new(ticket.result(
                    CallOutcome::Failed { error, partial: None },
                    Vec::new(),
                    None,
                    Vec::new(),
                )))
            }
        }
    }

    pub(super) fn belongs_to(&mut self, entry: Arc<Entry>) {
        self.entry = Some(entry);
    }

    pub(super) const fn call(&self) -> &CallId {
        &self.call
    }

    pub(super) fn tool_name(&self) -> &str {
        &self.tool_name
    }

    pub(super) fn record(&self, body: EventBody) -> Result<(), ToolError> {
        self.parts.recorder.record(Some(&self.call), body).map_err(|error| {
            ToolError::unavailable("the call was stopped, because it could not be recorded")
                .caused_by(&error)
        })
    }

    /// The call was refused before it began.
    pub(super) fn denied(mut self, error: ToolError) -> Box<ToolResult> {
        let duration = Millis(self.started.elapsed());
        let tool_name = self.tool_name.clone();
        self.close(EventBody::ToolCallDenied {
            tool_name,
            error: error.clone(),
            duration_ms: duration,
        });
        self.finish(CallOutcome::Failed { error, partial: None }, Vec::new(), None, Vec::new())
    }

    /// The call did not work; `partial` is what there is all the same.
    pub(super) fn failed(
        mut self,
        error: ToolError,
        partial: Option<ToolOutput>,
    ) -> Box<ToolResult> {
        let duration = Millis(self.started.elapsed());
        let tool_name = self.tool_name.clone();
        self.close(EventBody::ToolCallFailed {
            tool_name,
            error: error.clone(),
            duration_ms: duration,
        });
        let Some(output) = partial else {
            return self.finish(
                CallOutcome::Failed { error, partial: None },
                Vec::new(),
                None,
                Vec::new(),
            );
        };
        let content = output.content.unwrap_or_else(|| vec![Part::text(as_text(&output.value))]);
        let partial = (!output.value.is_null()).then_some(output.value);
        let content = if partial.is_some() { content } else { Vec::new() };
        self.finish(
            CallOutcome::Failed { error, partial },
            content,
            output.display,
            output.artifacts,
        )
    }

    /// The call worked.
    pub(super) fn completed(mut self, output: ToolOutput) -> Box<ToolResult> {
        if let Some(error) = output.failure.clone() {
            return self.failed(error, Some(ToolOutput { failure: None, ..output }));
        }
        let body = EventBody::ToolCallCompleted {
            tool_name: self.tool_name.clone(),
            result: for_event(&output.value, self.parts.limits.max_event_bytes),
            duration_ms: Millis(self.started.elapsed()),
        };
        self.close(body);
        let content = output.content.unwrap_or_else(|| vec![Part::text(as_text(&output.value))]);
        self.finish(CallOutcome::Completed(output.value), content, output.display, output.artifacts)
    }

    /// Writes the one end of this call. If that fails, the stream is closed, and with it every later
    /// call; this one has happened and keeps its result.
    fn close(&mut self, body: EventBody) {
        self.open = false;
        drop(self.parts.recorder.record(Some(&self.call), body));
    }

    fn finish(
        self,
        outcome: CallOutcome,
        content: Vec<Part>,
        display: Option<Display>,
        artifacts: Vec<Artifact>,
    ) -> Box<ToolResult> {
        let result = self.result(outcome, content, display, artifacts);
        if let Some(entry) = &self.entry {
            entry.count(result.success(), result.duration.0);
        }
        Box::new(result)
    }

    fn result(
        &self,
        outcome: CallOutcome,
        mut content: Vec<Part>,
        display: Option<Display>,
        mut artifacts: Vec<Artifact>,
    ) -> ToolResult {
        let whole = self.whole_text_if_too_long(&content);
        let truncated = cut_parts(&mut content, self.parts.limits.max_output_bytes);
        if let Some(text) = whole
            && let Ok(Some(artifact)) = self.parts.artifacts.keep(&self.call, &text)
        {
            content.push(Part::text(format!("[the whole output is in {}]", artifact.path)));
            artifacts.push(artifact);
        }
        if let CallOutcome::Failed { error, .. } = &outcome {
            content.insert(0, Part::text(format!("Error ({}): {}", error.kind, error.message)));
        }
        let duration = self.started.elapsed();
        ToolResult {
            tool_name: self.tool_name.clone(),
            call: self.call.clone(),
            outcome,
            llm_content: content,
            return_display: display,
            started_at: self.started_at,
            completed_at: self.started_at.after(duration),
            duration: Millis(duration),
            truncated,
            artifacts,
        }
    }

    fn whole_text_if_too_long(&self, content: &[Part]) -> Option<String> {
        let texts = || content.iter().filter_map(Part::as_text);
        let too_long = texts().map(str::len).sum::<usize>() > self.parts.limits.max_output_bytes;
        too_long.then(|| texts().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            let body = EventBody::ToolCallFailed {
                tool_name: self.tool_name.clone(),
                error: ToolError::cancelled("nobody waits for it any more"),
                duration_ms: Millis(self.started.elapsed()),
            };
            self.close(body);
            if let Some(entry) = &self.entry {
                entry.count(false, self.started.elapsed());
            }
        }
    }
}

/// Tells whether an error means that the call was refused rather than that it failed.
pub(super) const fn is_refusal(error: &ToolError) -> bool {
    matches!(error.kind, ErrorKind::Permission)
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Returns a value as an event carries it: whole if it is small, and its beginning if not.
fn for_event(value: &Value, limit: usize) -> Arc<Value> {
    if fits(value, &mut limit.clone()) {
        return Arc::new(value.clone());
    }
    let text: Cow<'_, str> = match longest_text(value) {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(value.to_string()),
    };
    let cut = floor_char_boundary(&text, limit / 16);
    Arc::new(json!({ "truncated": true, "beginning": text.get(..cut) }))
}

/// Counts down `left` by about the size of the value; stops as soon as it does not fit.
fn fits(value: &Value, left: &mut usize) -> bool {
    let own = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(_) | Value::Object(_) => 2,
    };
    if own > *left {
        return false;
    }
    *left -= own;
    match value {
        Value::Array(items) => items.iter().all(|item| fits(item, left)),
        Value::Object(map) => map.iter().all(|(key, item)| {
            *left = left.saturating_sub(key.len() + 4);
            fits(item, left)
        }),
        _ => true,
    }
}

/// What is too large is usually one long text in a small object; that text says most.
fn longest_text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Object(map) => map.values().filter_map(Value::as_str).max_by_key(|text| text.len()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_carries_small_values_whole_and_large_ones_cut() {
        let small = json!({ "a": [1, 2, { "b": "c" }] });
        assert_eq!(*for_event(&small, 1000), small);
        let large = for_event(&json!({ "content": "x".repeat(5000) }), 1600);
        assert_eq!(*large, json!({ "truncated": true, "beginning": "x".repeat(100) }));
        let many = for_event(&Value::from(vec![7; 5000]), 1600);
        assert_eq!(many["truncated"], true);
    }
}
