//! Records what a model was asked and answered, and replays it strictly.
//!
//! A recording is a file of JSON lines. The first names the model:
//!
//! ```json
//! {"cassette":1,"model":"gemini/gemini-2.5-flash","facts":{"window":1048576}}
//! ```
//!
//! Each further line is one exchange, written when its answer has ended:
//!
//! ```json
//! {"request":{"system":"…","tools":[],"messages":[{"role":"user","parts":[…]}]},"answer":{…}}
//! {"request":{"follows":1,"messages":[{"role":"tool","parts":[…]}]},"answer":{…}}
//! {"request":{"messages":[{"role":"user","parts":[…]}]},"error":{"kind":"quota","message":"…"}}
//! ```
//!
//! The file grows with the conversation, not with its square:
//!
//! - `system`, `tools`, `toolChoice`, `settings`, `maxOutputTokens` and `output` are left out where they are
//!   as on the line before.
//! - All messages of the file, those of requests and those of answers, are numbered from 0 in the order
//!   they stand there. A conversation that continues an earlier one **follows** the last message they
//!   share, and holds only what is new. The message of an answer follows the last one of its request.
//!
//! A request that was given up before its answer ended is not recorded. Repeats are not recorded either:
//! only what came in the end.
//!
//! **Placeholders** make a recording fit other machines: each is a value, as the working directory, and a
//! name such as `${cwd}` that stands for it in the file. Requests are compared with the names in place, and
//! answers are replayed with the values put back.

mod difference;
mod messages;
mod placeholder;
mod record;
mod replay;

use convoke_core::ModelFacts;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{ModelError, ModelErrorKind};
use crate::request::Request;
use crate::snapshot::RequestSnapshot;

use placeholder::Placeholders;
pub use record::Recording;
pub use replay::Replay;

/// The version of the format.
const VERSION: u64 = 1;

/// What a request holds beside its messages, in the order differences are looked for.
const FIELDS: [&str; 6] =
    ["system", "tools", "toolChoice", "settings", "maxOutputTokens", "output"];

/// A recording that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the recording: {message}")]
pub struct CassetteError {
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    cassette: u64,
    model: String,
    #[serde(default)]
    facts: ModelFacts,
}

/// An error as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptError {
    kind: ModelErrorKind,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    accepted: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    received_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl KeptError {
    fn of(error: &ModelError) -> Self {
        Self {
            kind: error.kind,
            message: error.message.clone(),
            status: error.status,
            hint: error.hint.clone(),
            accepted: error.accepted,
            received_bytes: error.received_bytes,
        }
    }

    fn into_error(self, provider: &str) -> ModelError {
        let error = ModelError::new(self.kind, provider, self.message);
        ModelError {
            status: self.status,
            hint: self.hint,
            accepted: self.accepted,
            received_bytes: self.received_bytes,
            ..error
        }
    }
}

/// A request as it is kept and compared: with placeholders in place.
#[derive(Clone, Debug, PartialEq)]
struct KeptRequest {
    /// The values of [`FIELDS`].
    fields: Vec<Value>,
    messages: Vec<Value>,
}

impl KeptRequest {
    fn of(request: &Request<'_>, placeholders: &Placeholders) -> Self {
        // A snapshot is plain data, which always becomes JSON.
        let mut value = serde_json::to_value(RequestSnapshot::of(request)).unwrap_or_default();
        placeholders.hide(&mut value);
        let mut take = |name: &str| value.get_mut(name).map(Value::take).unwrap_or_default();
        let fields = FIELDS.iter().map(|name| take(name)).collect();
        let messages = match take("messages") {
            Value::Array(messages) => messages,
            _ => Vec::new(),
        };
        Self { fields, messages }
    }
}

#[cfg(test)]
mod tests;
