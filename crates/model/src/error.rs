//! What went wrong with a model: what happened, whose word it is, and what to do about it.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is missing, wrong, or may not use this model (401, 403).
    Authentication,
    /// There is no such model, or no such address (404).
    NotFound,
    /// Too many requests; waiting helps (429).
    RateLimited,
    /// The account has nothing left; waiting does not help.
    Quota,
    /// The conversation is longer than the model's window.
    ContextTooLong,
    /// The provider does not accept the request (400, 413, 422).
    Rejected,
    /// The provider is broken or overloaded (5xx, 529).
    Server,
    /// The provider cannot be reached: no name, no route, no listener, a wrong certificate.
    Unreachable,
    /// The provider was silent for too long.
    Silent,
    /// The connection ended in the middle of the answer.
    Cut,
    /// The answer cannot be understood.
    Malformed,
    /// A replay does not know this request, or a script has run out.
    NotRecorded,
}

/// A model that did not answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ModelError {
    /// What kind of thing went wrong.
    pub kind: ModelErrorKind,
    /// Whose model it was.
    pub provider: String,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// What happened; the provider's own words where it gave some.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// How long the provider wants to be left alone.
    pub retry_after: Option<Duration>,
    /// Whether a repeat could help, as far as the error alone can tell.
    pub repeatable: bool,
    /// Whether nothing listens where it should, on this machine: asking again at once does not help, but somebody may be
    /// starting it.
    pub not_running: bool,
    /// Whether the provider took the request, so that what it was sent is billed, as far as can be told
    /// from here.
    pub accepted: bool,
    /// Whether the other side closed the connection before anything of an answer came, most likely because
    /// it had been kept for too long: the request can be made again at once.
    pub stale: bool,
    /// How many bytes of the answer had come: texts, thoughts and calls, of this attempt alone.
    pub received_bytes: u64,
}

impl ModelError {
    /// Makes an error; whether it is worth a repeat follows from its kind. Nothing is said to have come.
    pub fn new(
        kind: ModelErrorKind,
        provider: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            provider: provider.into(),
            status: None,
            message: message.into(),
            hint: None,
            retry_after: None,
            repeatable: kind.is_passing(),
            not_running: false,
            accepted: false,
            stale: false,
            received_bytes: 0,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says that the provider took the request, and how many bytes of its answer had come.
    #[must_use]
    pub const fn after_receiving(mut self, bytes: u64) -> Self {
        self.accepted = true;
        self.received_bytes = bytes;
        self
    }
}

impl ModelErrorKind {
    /// Tells whether such a thing tends to pass.
    pub const fn is_passing(self) -> bool {
        matches!(
            self,
            Self::RateLimited | Self::Server | Self::Unreachable | Self::Silent | Self::Cut
        )
    }

    /// Returns its word, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::NotFound => "not_found",
            Self::RateLimited => "rate_limited",
            Self::Quota => "quota",
            Self::ContextTooLong => "context_too_long",
            Self::Rejected => "rejected",
            Self::Server => "server",
            Self::Unreachable => "unreachable",
            Self::Silent => "silent",
            Self::Cut => "cut",
            Self::Malformed => "malformed",
            Self::NotRecorded => "not_recorded",
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.provider)?;
        if let Some(status) = self.status {
            write!(formatter, " answered {status}")?;
        }
        write!(formatter, ": {}", self.message)
    }
}
