//! How a request to a server can go wrong, and what its caller is told.

use std::sync::Arc;
use std::time::Duration;

use convoke_core::{ErrorKind, ToolError};
use serde_json::{Value, json};

use super::offer::cut;

/// JSON-RPC: the arguments are wrong; many servers say it of a tool they do not know.
const INVALID_PARAMS: i64 = -32602;
const METHOD_NOT_FOUND: i64 = -32601;
const MAX_REASON_BYTES: usize = 2 * 1024;
/// How much of a refusal is told.
const MAX_REFUSAL_BYTES: usize = 16 * 1024;

/// Why a request was not answered with a result.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Failure {
    /// The connection is gone; this is how it ended.
    Ended(Arc<str>),
    /// The connection broke while the answer was awaited, and the server is still there.
    Lost(String),
    /// The server refused.
    Refused {
        /// The number JSON-RPC has for it.
        code: i64,
        /// What the server says.
        message: String,
        /// What it adds for programs.
        data: Option<Value>,
    },
    /// It did not answer in time.
    Timeout(Duration),
    /// The caller does not want it any more.
    Cancelled,
    /// It could not be sent.
    Unsent(String),
    /// The server wants to know who asks; this is what a person has to do.
    Unauthorized(String),
    /// It waits to be tried again.
    Resting {
        /// Why it failed.
        why: String,
        /// For how long.
        wait: Duration,
    },
    /// It was stopped, or is not to be used.
    Off(&'static str),
    /// It could not be started.
    NotStarted(String),
}

impl Failure {
    /// Returns why, without who.
    pub(super) fn reason(&self, server: &str) -> String {
        let reason = match self {
            Self::NotStarted(why)
            | Self::Unauthorized(why)
            | Self::Unsent(why)
            | Self::Lost(why) => why.clone(),
            Self::Ended(how) => how.to_string(),
            other => other.clone().about(server).message,
        };
        // It is kept, recorded and told to models; whoever said it may have said a lot.
        cut(&reason, MAX_REASON_BYTES)
    }

    /// Says what happened, for whoever called.
    pub(super) fn about(self, server: &str) -> ToolError {
        self.about_one_that_rests(server, Duration::ZERO)
    }

    /// Says the same of a server that is left alone for so long before a call starts it again.
    pub(super) fn about_one_that_rests(self, server: &str, rest: Duration) -> ToolError {
        let error = match self {
            Self::Ended(how) => {
                let gone = format!(
                    "MCP server `{server}` is gone: {how}; whether the call had an effect is not known."
                );
                if rest.is_zero() {
                    ToolError::unavailable(format!("{gone} The next call starts it again"))
                } else {
                    let seconds = rest.as_secs_f64().ceil();
                    let again = format!(
                        "{gone} It has failed several times and is left alone for now: a call in {seconds} s \
                         starts it again"
                    );
                    return ToolError::unavailable(again).with_details(retry(server, rest));
                }
            }
            Self::Lost(why) => ToolError::unavailable(format!(
                "MCP server `{server}` did not get to answer: {why}; whether the call had an effect is \
                 not known"
            )),
            Self::Refused { code, message, data } => return refused(server, code, &message, data),
            Self::Timeout(limit) => {
                let timeout = ToolError::timeout(limit);
                let message = format!(
                    "{}: MCP server `{server}` had not answered by then, and was told to stop; whether the \
                     call had an effect is not known",
                    timeout.message
                );
                ToolError { message, ..timeout }
            }
            Self::Cancelled => ToolError::cancelled(format!("MCP server `{server}` was told")),
            Self::Unsent(why) => {
                ToolError::unavailable(format!("MCP server `{server}` could not be asked: {why}"))
            }
            Self::Unauthorized(what) => ToolError::permission(format!(
                "MCP server `{server}` wants to know who asks: {what}"
            )),
            Self::Resting { why, wait } => {
                let seconds = wait.as_secs_f64().ceil();
                let message = format!(
                    "MCP server `{server}` has failed several times and is left alone for another \
                     {seconds} s: {why}"
                );
                return ToolError::unavailable(message).with_details(retry(server, wait));
            }
            Self::Off(why) => ToolError::unavailable(format!("MCP server `{server}` {why}")),
            Self::NotStarted(why) => {
                ToolError::unavailable(format!("MCP server `{server}` could not be started: {why}"))
            }
        };
        if error.details.is_some() {
            return error;
        }
        error.with_details(json!({ "server": server }))
    }
}

/// Says for programs when a server may be asked again.
fn retry(server: &str, wait: Duration) -> Value {
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    json!({ "server": server, "retryInMs": millis })
}

fn refused(server: &str, code: i64, message: &str, data: Option<Value>) -> ToolError {
    let kind = match code {
        INVALID_PARAMS if names_an_unknown_tool(message) => ErrorKind::NotFound,
        METHOD_NOT_FOUND => ErrorKind::Unavailable,
        _ => ErrorKind::Failed,
    };
    let mut details = json!({ "server": server, "code": code });
    if let (Some(data), Some(details)) = (data, details.as_object_mut()) {
        details.insert("data".to_owned(), data);
    }
    let message = cut(message, MAX_REFUSAL_BYTES);
    ToolError::new(kind, format!("MCP server `{server}` refused: {message} (code {code})"))
        .with_details(details)
}

/// Servers say this in many words.
pub(super) fn names_an_unknown_tool(message: &str) -> bool {
    const LONGEST: usize = 400;
    if message.len() > LONGEST {
        return false;
    }
    let message = message.to_ascii_lowercase();
    message.contains("unknown tool")
        || message.contains("no such tool")
        || (message.contains("tool")
            && (message.contains("not found") || message.contains("does not exist")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_tool_is_not_found_in_every_spelling() {
        for message in ["Unknown tool: x", "Tool x not found", "tool 'x' does not exist"] {
            let failure =
                Failure::Refused { code: INVALID_PARAMS, message: message.into(), data: None };
            assert_eq!(failure.about("s").kind, ErrorKind::NotFound, "{message}");
        }
        let failure =
            Failure::Refused { code: INVALID_PARAMS, message: "`n` is missing".into(), data: None };
        let error = failure.about("s");
        assert_eq!(error.kind, ErrorKind::Failed);
        assert_eq!(error.details, Some(json!({ "server": "s", "code": INVALID_PARAMS })));
    }

    #[test]
    fn every_failure_names_the_server() {
        for failure in [
            Failure::Ended("it exited with status 1".into()),
            Failure::Lost("the connection broke".into()),
            Failure::Refused { code: 1, message: "no".into(), data: None },
            Failure::Timeout(Duration::from_secs(1)),
            Failure::Cancelled,
            Failure::Unsent("no route".into()),
            Failure::Unauthorized("sign in".into()),
            Failure::Resting { why: "no".into(), wait: Duration::from_secs(1) },
            Failure::Off("was stopped"),
            Failure::NotStarted("no".into()),
        ] {
            let error = failure.about("files");
            assert!(error.message.contains("`files`"), "{error}");
        }
    }
}
