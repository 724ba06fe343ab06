//! Why a call failed, for the model that has to act on it and for the person who reads the log.
//!
//! An error is data: a kind a program can match, a message that says what happened and what to do,
//! details, and the chain of causes. The wording of the five classic cases is fixed here and nowhere
//! else.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::nearest::{did_you_mean, nearest};

/// The kinds of failure a caller can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The tool, or what it was to work on, does not exist.
    NotFound,
    /// The arguments do not fit the tool's schema.
    Validation,
    /// Policy, the allowed roots or the operating system said no.
    Permission,
    /// It took too long.
    Timeout,
    /// Somebody stopped it.
    Cancelled,
    /// It ran and went wrong.
    Failed,
    /// It cannot work here or now.
    Unavailable,
    /// It began, and nobody knows how it ended: whoever ran it was lost.
    Interrupted,
}

impl ErrorKind {
    /// Returns the word this kind has in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Validation => "validation",
            Self::Permission => "permission",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Unavailable => "unavailable",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A failed call, as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// What happened and what to do next; written for the model.
    pub message: String,
    /// Facts a program may want: the limit that was passed, the arguments that were wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What led to it, nearest cause first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

impl ToolError {
    /// Makes an error of any kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: None, causes: Vec::new() }
    }

    /// The tool of that name does not exist; says which come close.
    pub fn unknown_tool<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let close = nearest(name, known);
        Self::new(ErrorKind::NotFound, format!("Tool \"{name}\" not found{}", did_you_mean(&close)))
            .with_details(json!({ "tool": name, "nearest": close }))
    }

    /// What the tool was to work on does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// The arguments are wrong; each issue says which, why and what was expected.
    pub fn validation(issues: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let issues: Vec<String> = issues.into_iter().map(Into::into).collect();
        let mut message = "Parameter validation failed".to_owned();
        for issue in &issues {
            message.push_str(if issues.len() == 1 { ": " } else { "\n- " });
            message.push_str(issue);
        }
        Self::new(ErrorKind::Validation, message).with_details(json!({ "issues": issues }))
    }

    /// It took longer than it was given.
    pub fn timeout(limit: Duration) -> Self {
        let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Self::new(ErrorKind::Timeout, format!("Tool execution timed out after {millis}ms"))
            .with_details(json!({ "timeoutMs": millis }))
    }

    /// It was not allowed.
    pub fn permission(reason: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Permission, format!("Permission denied: {reason}"))
    }

    /// It was stopped.
    pub fn cancelled(reason: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Cancelled, format!("Tool execution was cancelled: {reason}"))
    }

    /// It ran and went wrong.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// It cannot work here or now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// Adds facts for programs.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details).filter(|details| !details.is_null());
        self
    }

    /// Keeps what led to this error, and what led to that.
    #[must_use]
    pub fn caused_by(mut self, cause: &(dyn StdError + 'static)) -> Self {
        let mut next = Some(cause);
        while let Some(error) = next {
            self.causes.push(error.to_string());
            next = error.source();
        }
        self
    }

    /// Turns any error into a tool error. One that already is a tool error stays what it is.
    pub fn from_any(error: Box<dyn StdError + Send + Sync>) -> Self {
        match error.downcast::<Self>() {
            Ok(tool_error) => *tool_error,
            Err(other) => {
                let error = Self::failed(other.to_string());
                match other.source() {
                    Some(source) => error.caused_by(source),
                    None => error,
                }
            }
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl StdError for ToolError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classic_wording_is_kept() {
        let unknown = ToolError::unknown_tool("red_file", ["read_file", "grep"]);
        assert!(unknown.message.starts_with("Tool \"red_file\" not found"), "{unknown}");
        assert!(unknown.message.contains("`read_file`"), "{unknown}");
        assert_eq!(
            ToolError::validation(["`path` is missing"]).message,
            "Parameter validation failed: `path` is missing"
        );
        assert_eq!(
            ToolError::timeout(Duration::from_secs(30)).message,
            "Tool execution timed out after 30000ms"
        );
        assert_eq!(
            ToolError::permission("Access denied").message,
            "Permission denied: Access denied"
        );
    }

    #[test]
    fn several_issues_are_a_list() {
        let error = ToolError::validation(["one", "two"]);
        assert_eq!(error.message, "Parameter validation failed\n- one\n- two");
        assert_eq!(error.details, Some(json!({ "issues": ["one", "two"] })));
    }

    #[test]
    fn causes_are_kept_and_tool_errors_pass_through() {
        let io = std::io::Error::other(ToolError::failed("inner"));
        let error = ToolError::from_any(Box::new(io));
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Failed, "inner"));

        let passed = ToolError::from_any(Box::new(ToolError::permission("no")));
        assert_eq!(passed.kind, ErrorKind::Permission);
    }
}
