//! The end of a call: one result, one event, one count.
//!
//! A [`Ticket`] is made when a call is requested and used up when it ends. If it is dropped instead,
//! because the caller gave up waiting, the call is recorded as cancelled. So no request is left open.

use std::borrow::Cow;
use std::sync::Arc;

use convoke_core::event::FileSeen;
use convoke_core::{
    Artifact, CallId, CallOutcome, Display, ErrorKind, EventBody, Millis, Part, Repeat, Timestamp,
    ToolError, ToolResult, Truncation,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Parts;
use crate::record::RecordError;
use crate::registry::Entry;
use crate::tool::{Content, ToolOutput};
use crate::truncate::{cut_middle, cut_parts, floor_char_boundary};
use crate::validate::MAX_DEPTH;

/// A call under way.
pub(super) struct Ticket {
    parts: Arc<Parts>,
    call: CallId,
    tool_name: String,
    entry: Option<Arc<Entry>>,
    started_at: Timestamp,
    started: Instant,
    /// What the model is told with the result.
    notes: Vec<String>,
    /// Whether a rule may answer in a person's place, if somebody is asked.
    rules_answer: bool,
    /// Whether the call began, and what happens if it begins again.
    begun: Option<Repeat>,
    /// The files that it saw or left.
    files: Vec<FileSeen>,
    open: bool,
}

/// A call that was stopped with its run.
pub(super) enum Stopped {
    /// It stays open: the process that resumes the run makes it.
    Deferred(Box<ToolResult>),
    /// It is over.
    Ended(Box<ToolResult>),
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
            notes: Vec::new(),
            rules_answer: true,
            begun: None,
            files: Vec::new(),
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
                Err(Box::new(ticket.result(Some(error), ToolOutput::default())))
            }
        }
    }

    pub(super) fn belongs_to(&mut self, entry: Arc<Entry>) {
        self.entry = Some(entry);
    }

    /// The wait is over: time counts from here.
    pub(super) fn begin(&mut self, repeat: Repeat) {
        self.begun = Some(repeat);
        self.started_at = self.parts.context.clock().now();
        self.started = Instant::now();
    }

    pub(super) const fn call(&self) -> &CallId {
        &self.call
    }

    /// Returns its tool, if there is one.
    pub(super) fn entry(&self) -> Option<&Arc<Entry>> {
        self.entry.as_ref()
    }

    /// A hook wants a person to be asked.
    pub(super) const fn only_a_person_answers(&mut self) {
        self.rules_answer = false;
    }

    /// Tells whether a rule may answer a question about it.
    pub(super) const fn may_be_answered_by_rule(&self) -> bool {
        self.rules_answer
    }

    pub(super) fn tool_name(&self) -> &str {
        &self.tool_name
    }

    pub(super) fn record(&self, body: EventBody) -> Result<(), ToolError> {
        self.parts.recorder.record(Some(&self.call), body).map_err(|error| unrecorded(&error))
    }

    /// Waits until what was recorded will survive the machine.
    pub(super) async fn sync(&self) -> Result<(), ToolError> {
        self.parts.recorder.sync().await.map_err(|error| unrecorded(&error))
    }

    /// Records with its end that it saw or left these files.
    pub(super) fn saw(&mut self, files: Vec<FileSeen>) {
        self.files.extend(files);
    }

    /// Tells the model something with the result.
    pub(super) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// The call ended before it began: it was wrong, or not allowed.
    pub(super) fn answered(self, error: ToolError) -> Box<ToolResult> {
        if is_refusal(&error) { self.denied(error) } else { self.failed(error, None) }
    }

    /// The call waits, for an answer of a person mostly. It has no end yet: whoever goes on with the run makes it
    /// again.
    pub(super) fn deferred(mut self, why: ToolError) -> Box<ToolResult> {
        let tool_name = self.tool_name.clone();
        self.close(EventBody::ToolCallDeferred { tool_name, reason: why.message.clone() });
        Box::new(self.result(Some(why), ToolOutput::default()))
    }

    /// The run is stopped. A call that did not begin, or may begin again, stays open for the process that resumes the
    /// run, exactly as after a kill. One that may do harm if it begins again is over, and nobody knows how far it got.
    pub(super) fn stopped(self, partial: Option<ToolOutput>) -> Stopped {
        let defers = self.parts.context.defers();
        match self.begun {
            Some(Repeat::Unsafe) if defers => Stopped::Ended(self.failed(interrupted(), partial)),
            _ if defers => Stopped::Deferred(self.deferred(was_stopped())),
            _ => Stopped::Ended(self.failed(was_stopped(), partial)),
        }
    }

    /// The call was refused before it began.
    pub(super) fn denied(self, error: ToolError) -> Box<ToolResult> {
        self.finish(Some(error), ToolOutput::default(), |tool_name, error, content, duration_ms| {
            EventBody::ToolCallDenied { tool_name, error, content, duration_ms }
        })
    }

    /// The call did not work; `partial` is what there is all the same.
    pub(super) fn failed(self, error: ToolError, partial: Option<ToolOutput>) -> Box<ToolResult> {
        self.finish(
            Some(error),
            partial.unwrap_or_default(),
            |tool_name, error, content, duration_ms| EventBody::ToolCallFailed {
                tool_name,
                error,
                content,
                duration_ms,
                files: Vec::new(),
            },
        )
    }

    /// The call came back.
    pub(super) fn completed(self, mut output: ToolOutput) -> Box<ToolResult> {
        match output.failure.take() {
            Some(error) => self.failed(error, Some(output)),
            None => self.finish(None, output, |tool_name, error, content, duration_ms| {
                let files = Vec::new();
                EventBody::ToolCallFailed { tool_name, error, content, duration_ms, files }
            }),
        }
    }

    /// Writes the one end of this call. If that fails, the stream is closed, and with it every later
    /// call; this one has happened and keeps its result.
    fn close(&mut self, body: EventBody) {
        self.open = false;
        drop(self.parts.recorder.record(Some(&self.call), body));
    }

    fn finish(
        mut self,
        mut error: Option<ToolError>,
        mut output: ToolOutput,
        failure: impl FnOnce(String, ToolError, Vec<Part>, Millis) -> EventBody,
    ) -> Box<ToolResult> {
        self.parts.entered.hide(&self.call, &mut output, error.as_mut());
        let result = self.result(error.map(bounded), output);
        let (tool_name, content) = (self.tool_name.clone(), result.llm_content.clone());
        let body = match &result.outcome {
            CallOutcome::Completed(value) => EventBody::ToolCallCompleted {
                tool_name,
                result: for_event(value, self.parts.limits.max_event_bytes),
                content,
                display: result.return_display.clone(),
                duration_ms: result.duration,
                files: Vec::new(),
            },
            CallOutcome::Failed { error, .. } => {
                failure(tool_name, error.clone(), content, result.duration)
            }
        };
        let saw = std::mem::take(&mut self.files);
        let mut body = body;
        if let EventBody::ToolCallCompleted { files, .. }
        | EventBody::ToolCallFailed { files, .. } = &mut body
        {
            *files = saw;
        }
        self.close(body);
        if let Some(entry) = &self.entry {
            entry.count(result.success(), result.duration.get());
        }
        Box::new(result)
    }

    fn result(&self, error: Option<ToolError>, output: ToolOutput) -> ToolResult {
        let ToolOutput { value, content, display, mut artifacts, .. } = output;
        let display = display.map(bounded_display);
        let nothing = error.is_some() && value.is_null();
        let mut shown = if nothing { Shown::default() } else { self.show(content, &value) };
        artifacts.append(&mut shown.artifacts);
        if let Some(error) = &error {
            let text = format!("Error ({}): {}", error.kind, error.message);
            shown.parts.insert(0, Part::text(text));
        }
        shown.parts.extend(self.notes.iter().map(Part::text));
        let duration = self.started.elapsed();
        ToolResult {
            tool_name: self.tool_name.clone(),
            call: self.call.clone(),
            outcome: match error {
                None => CallOutcome::Completed(value),
                Some(error) => CallOutcome::Failed { error, partial: (!nothing).then_some(value) },
            },
            llm_content: shown.parts,
            return_display: display,
            started_at: self.started_at,
            completed_at: self.started_at.after(duration),
            duration: Millis::new(duration),
            truncated: shown.truncated,
            artifacts,
        }
    }

    /// Works out what the model sees: cut to the limit, with the whole kept where that is possible.
    fn show(&self, content: Content, value: &Value) -> Shown {
        let limit = self.parts.limits.max_output_bytes;
        let text = match content {
            Content::Parts(mut parts) => {
                let whole = (text_bytes(&parts) > limit).then(|| joined(&parts));
                let truncated = cut_parts(&mut parts, limit);
                let mut shown = Shown { parts, truncated, artifacts: Vec::new() };
                if let Some(whole) = whole {
                    self.keep_whole(&mut shown, &whole);
                }
                return shown;
            }
            Content::Field(name) => value.get(name).map_or(Cow::Borrowed(""), as_text),
            Content::Value => as_text(value),
        };
        match cut_middle(&text, limit) {
            None => Shown { parts: vec![Part::text(text)], ..Shown::default() },
            Some(cut) => {
                let truncation =
                    Truncation { original_bytes: text.len() as u64, kept_bytes: cut.len() as u64 };
                let parts = vec![Part::text(cut)];
                let mut shown = Shown { parts, truncated: Some(truncation), artifacts: Vec::new() };
                self.keep_whole(&mut shown, &text);
                shown
            }
        }
    }

    /// A store that fails is no reason to lose the call: the cut is said either way.
    fn keep_whole(&self, shown: &mut Shown, text: &str) {
        if let Ok(Some(artifact)) = self.parts.artifacts.keep(&self.call, text) {
            shown.parts.push(Part::text(format!("[the whole output is in {}]", artifact.path)));
            shown.artifacts.push(artifact);
        }
    }
}

/// What the model sees.
#[derive(Default)]
struct Shown {
    parts: Vec<Part>,
    truncated: Option<Truncation>,
    artifacts: Vec<Artifact>,
}

/// Cuts an error to what a model can use and an event should carry.
fn bounded(mut error: ToolError) -> ToolError {
    const MAX_MESSAGE_BYTES: usize = 8 * 1024;
    const MAX_CAUSES: usize = 8;
    const MAX_CAUSE_BYTES: usize = 1024;
    if let Some(cut) = cut_middle(&error.message, MAX_MESSAGE_BYTES) {
        error.message = cut;
    }
    error.causes.truncate(MAX_CAUSES);
    for cause in &mut error.causes {
        if let Some(cut) = cut_middle(cause, MAX_CAUSE_BYTES) {
            *cause = cut;
        }
    }
    if error.details.as_ref().is_some_and(|details| !fits(details, &mut MAX_MESSAGE_BYTES.clone()))
    {
        error.details = Some(json!({ "truncated": true }));
    }
    error
}

pub(super) fn bounded_display(display: Display) -> Display {
    const MAX_BYTES: usize = 256 * 1024;
    match cut_middle(&display.text, MAX_BYTES) {
        Some(text) => Display { text, ..display },
        None => display,
    }
}

fn text_bytes(parts: &[Part]) -> usize {
    parts.iter().filter_map(Part::as_text).map(str::len).sum()
}

fn joined(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n")
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            let tool_name = self.tool_name.clone();
            let defers = self.parts.context.defers();
            let error = match self.begun {
                Some(Repeat::Unsafe) if defers => interrupted(),
                _ if defers => {
                    let reason = was_stopped().message;
                    return self.close(EventBody::ToolCallDeferred { tool_name, reason });
                }
                _ => ToolError::cancelled("nobody waits for it any more"),
            };
            let content = vec![Part::text(format!("Error ({}): {}", error.kind, error.message))];
            let duration_ms = Millis::new(self.started.elapsed());
            let files = std::mem::take(&mut self.files);
            self.close(EventBody::ToolCallFailed { tool_name, error, content, duration_ms, files });
            if let Some(entry) = &self.entry {
                entry.count(false, self.started.elapsed());
            }
        }
    }
}

fn was_stopped() -> ToolError {
    ToolError::cancelled("the run was stopped")
}

fn interrupted() -> ToolError {
    ToolError::new(
        ErrorKind::Interrupted,
        "it began, and was stopped together with the run before it ended: it may have had an effect, how far it got is \
         not known, and it was not made again. Look at what there is before you repeat it",
    )
}

/// Tells whether an error means that the call was refused rather than that it failed.
const fn is_refusal(error: &ToolError) -> bool {
    matches!(error.kind, ErrorKind::Permission)
}

fn as_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_string()),
    }
}

/// Returns a value as an event carries it: whole if it is small, and its beginning if not.
pub(crate) fn for_event(value: &Value, limit: usize) -> Arc<Value> {
    if fits(value, &mut limit.clone()) {
        return Arc::new(value.clone());
    }
    let text: Cow<'_, str> = match longest_text(value) {
        Some(text) => Cow::Borrowed(text),
        // Too deep to be written: it would be too deep to be read.
        None if !fits(value, &mut usize::MAX.clone()) => Cow::Borrowed("…"),
        None => Cow::Owned(value.to_string()),
    };
    let cut = floor_char_boundary(&text, limit / 16);
    Arc::new(json!({ "truncated": true, "beginning": text.get(..cut) }))
}

/// Counts down `left` by about the size of the value; stops as soon as it does not fit.
fn fits(value: &Value, left: &mut usize) -> bool {
    fits_at(value, left, 0)
}

fn fits_at(value: &Value, left: &mut usize, depth: usize) -> bool {
    let own = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(_) | Value::Object(_) => 2,
    };
    if own > *left || depth > MAX_DEPTH {
        return false;
    }
    *left -= own;
    match value {
        Value::Array(items) => items.iter().all(|item| fits_at(item, left, depth + 1)),
        Value::Object(map) => map.iter().all(|(key, item)| {
            *left = left.saturating_sub(key.len() + 4);
            fits_at(item, left, depth + 1)
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

fn unrecorded(error: &RecordError) -> ToolError {
    ToolError::unavailable("the call was stopped, because it could not be recorded")
        .caused_by(error)
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
