//! What one tool call gives back: one struct for programs, for the model and for people.
//!
//! Success is not a field that could disagree with the rest: a result either has a value or an
//! error. In JSON it carries the names callers already know: `toolName`, `success`, `result`,
//! `error`, `startedAt`, `completedAt`, `durationMs`, `llmContent`, `returnDisplay`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::error::{ErrorKind, ToolError};
use crate::id::CallId;
use crate::message::Part;
use crate::time::{Millis, Timestamp};

/// The value of a call, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum CallOutcome {
    /// It worked.
    Completed(Value),
    /// It did not.
    Failed {
        /// Why.
        error: ToolError,
        /// What there was until then: output of a command that timed out, for instance.
        partial: Option<Value>,
    },
}

/// What one tool call gave back.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The tool that was asked for.
    pub tool_name: String,
    /// The call that is answered.
    pub call: CallId,
    /// The value, or the error.
    pub outcome: CallOutcome,
    /// What the model sees.
    pub llm_content: Vec<Part>,
    /// What a person sees, where that differs.
    pub return_display: Option<Display>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub completed_at: Timestamp,
    /// How long it took, failures included.
    pub duration: Millis,
    /// What was cut from what the model sees.
    pub truncated: Option<Truncation>,
    /// Files kept beside the run.
    pub artifacts: Vec<Artifact>,
}

impl ToolResult {
    /// Tells whether the call worked.
    pub const fn success(&self) -> bool {
        matches!(self.outcome, CallOutcome::Completed(_))
    }

    /// Returns the value of a call that worked.
    pub const fn value(&self) -> Option<&Value> {
        match &self.outcome {
            CallOutcome::Completed(value) => Some(value),
            CallOutcome::Failed { .. } => None,
        }
    }

    /// Returns why the call failed.
    pub const fn error(&self) -> Option<&ToolError> {
        match &self.outcome {
            CallOutcome::Completed(_) => None,
            CallOutcome::Failed { error, .. } => Some(error),
        }
    }

    /// Returns the kind of failure.
    pub fn error_kind(&self) -> Option<ErrorKind> {
        self.error().map(|error| error.kind)
    }

    /// Returns the text the model sees, its parts joined.
    pub fn text(&self) -> String {
        self.llm_content.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n")
    }
}

/// How a text for people is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DisplayFormat {
    /// As it stands.
    #[default]
    Text,
    /// Markdown.
    Markdown,
    /// A unified diff.
    Diff,
}

/// A text for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Display {
    /// How it is written.
    #[serde(default)]
    pub format: DisplayFormat,
    /// The text.
    pub text: String,
}

/// What was cut, so that nobody takes a part for the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    /// How many bytes there were.
    pub original_bytes: u64,
    /// How many are left.
    pub kept_bytes: u64,
}

/// A file kept beside the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// Where it is.
    pub path: String,
    /// What it holds.
    pub description: String,
    /// How many bytes.
    pub bytes: u64,
}

/// The JSON form of a [`ToolResult`]: borrowed when it is written, owned when it is read.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ToolResult")]
struct Wire<'a> {
    /// The tool that was asked for.
    tool_name: Cow<'a, str>,
    /// The call that is answered.
    call: CallId,
    /// Whether it worked.
    success: bool,
    /// The value of a call that worked; what there was of one that did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Cow<'a, Value>>,
    /// Why it did not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, ToolError>>,
    /// When it started, in milliseconds since the epoch.
    started_at: Timestamp,
    /// When it ended, in milliseconds since the epoch.
    completed_at: Timestamp,
    /// How long it took.
    duration_ms: Millis,
    /// What the model sees.
    llm_content: Cow<'a, [Part]>,
    /// What a person sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    return_display: Option<Cow<'a, Display>>,
    /// What was cut from what the model sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    truncated: Option<Truncation>,
    /// Files kept beside the run.
    #[serde(default)]
    artifacts: Cow<'a, [Artifact]>,
}

impl Serialize for ToolResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (result, error) = match &self.outcome {
            CallOutcome::Completed(value) => (Some(value), None),
            CallOutcome::Failed { error, partial } => (partial.as_ref(), Some(error)),
        };
        Wire {
            tool_name: Cow::Borrowed(&self.tool_name),
            call: self.call.clone(),
            success: self.success(),
            result: result.map(Cow::Borrowed),
            error: error.map(Cow::Borrowed),
            started_at: self.started_at,
            completed_at: self.completed_at,
            duration_ms: self.duration,
            llm_content: Cow::Borrowed(&self.llm_content),
            return_display: self.return_display.as_ref().map(Cow::Borrowed),
            truncated: self.truncated,
            artifacts: Cow::Borrowed(&self.artifacts),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let result = wire.result.map(Cow::into_owned);
        let outcome = match wire.error.map(Cow::into_owned) {
            None if wire.success => CallOutcome::Completed(result.unwrap_or(Value::Null)),
            Some(error) if !wire.success => CallOutcome::Failed { error, partial: result },
            _ => {
                return Err(serde::de::Error::custom(
                    "`success` and `error` contradict each other",
                ));
            }
        };
        Ok(Self {
            tool_name: wire.tool_name.into_owned(),
            call: wire.call,
            outcome,
            llm_content: wire.llm_content.into_owned(),
            return_display: wire.return_display.map(Cow::into_owned),
            started_at: wire.started_at,
            completed_at: wire.completed_at,
            duration: wire.duration_ms,
            truncated: wire.truncated,
            artifacts: wire.artifacts.into_owned(),
        })
    }
}

impl JsonSchema for ToolResult {
    fn schema_name() -> Cow<'static, str> {
        "ToolResult".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Wire::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn result(outcome: CallOutcome) -> ToolResult {
        ToolResult {
            tool_name: "read_file".into(),
            call: CallId::new("c1"),
            outcome,
            llm_content: vec![Part::text("hello")],
            return_display: None,
            started_at: Timestamp::from_millis(1000),
            completed_at: Timestamp::from_millis(1002),
            duration: Millis::new(Duration::from_millis(2)),
            truncated: None,
            artifacts: Vec::new(),
        }
    }

    #[test]
    fn json_has_the_mission_names_and_comes_back_the_same() {
        let ok = result(CallOutcome::Completed(json!({ "content": "hello" })));
        let json = serde_json::to_value(&ok).unwrap();
        assert_eq!(
            json,
            json!({
                "toolName": "read_file", "call": "c1", "success": true,
                "result": { "content": "hello" }, "startedAt": 1000, "completedAt": 1002,
                "durationMs": 2, "llmContent": [{ "type": "text", "text": "hello" }], "artifacts": [],
            })
        );
        assert_eq!(serde_json::from_value::<ToolResult>(json).unwrap(), ok);
    }

    #[test]
    fn a_failure_keeps_what_there_was() {
        let failed = result(CallOutcome::Failed {
            error: ToolError::timeout(Duration::from_secs(1)),
            partial: Some(json!("half")),
        });
        let json = serde_json::to_value(&failed).unwrap();
        assert_eq!((&json["success"], &json["result"]), (&json!(false), &json!("half")));
        assert_eq!(serde_json::from_value::<ToolResult>(json).unwrap(), failed);
    }

    #[test]
    fn a_result_that_contradicts_itself_is_refused() {
        let mut json = serde_json::to_value(result(CallOutcome::Completed(json!(1)))).unwrap();
        json["success"] = json!(false);
        assert!(serde_json::from_value::<ToolResult>(json).is_err());
    }
}
