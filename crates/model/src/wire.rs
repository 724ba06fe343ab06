//! The four wire formats, without any I/O: a request becomes bytes, events become chunks.
//!
//! They are written by hand, on `serde_json` alone, rather than taken from a client library. Three of
//! our promises cannot be kept from outside of one: the same conversation always gives the same bytes and
//! a longer one starts with them; a tool's answer carries its error flag and its images; and a
//! model's name is never rewritten (the library that was tried takes `-max` off `qwen-max`). Each wire
//! is small, since all of them share this shape.
//!
//! Rules for every wire:
//! - A parameter is sent only if somebody set it.
//! - Keys come in a fixed order, tools and messages in the order given.
//! - What belongs to a message part but only its provider understands is kept as [`Part::Opaque`] with
//!   the wire's name, directly *before* the part it belongs to, and goes back with that part. Opaque
//!   parts of other wires are left out; so are thoughts, unless the provider wants them back signed.
//! - Text is handed out as it comes; calls are handed out by name when they begin, and whole at the end.
//!
//! [`Part::Opaque`]: convoke_core::Part::Opaque

mod anthropic;
mod gemini;
pub(crate) mod json;
mod openai;
mod openai_chat;
mod openai_responses;
mod plain;
#[cfg(test)]
mod samples;

use convoke_core::ModelFacts;

use crate::error::ModelErrorKind;
use crate::model::{Answer, Chunk};
use crate::provider::WireFormat;
use crate::request::Request;

/// A request as it is sent: `POST {base_url}/{path}`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// What follows the base URL, without a slash at the start.
    pub(crate) path: String,
    /// The body: JSON.
    pub(crate) body: Vec<u8>,
}

/// One way to talk to a model.
pub(crate) trait Wire: Send + Sync {
    /// Returns the headers that carry the key and the version.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// Writes a request. What is known about the model counts where the wire insists on a number that
    /// nobody set.
    fn encode(&self, model: &str, facts: &ModelFacts, request: &Request<'_>) -> Outgoing;

    /// Starts to read an answer.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// Reads the body of an error answer.
    fn error(&self, status: u16, body: &[u8]) -> Complaint;
}

/// Reads the server-sent events of one answer, in order.
pub(crate) trait Decoder: Send {
    /// Reads one event: its `event:` name, if there was one, and its data. What is to be shown at once
    /// is added to `chunks`.
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), Complaint>;

    /// Tells whether the provider said that the answer is whole. What was used may still follow.
    fn is_complete(&self) -> bool;

    /// Tells whether the provider said that nothing follows at all.
    fn is_over(&self) -> bool;

    /// Returns how many bytes of calls have come: these are not shown as they come.
    fn call_bytes(&self) -> usize;

    /// Returns the answer, once the stream has ended and the answer is complete.
    fn finish(self: Box<Self>) -> Result<Answer, Complaint>;
}

/// What a provider complained about, in its own words, and what we take it to mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) kind: ModelErrorKind,
    pub(crate) message: String,
    /// Whether a repeat could help; follows from the kind unless said otherwise.
    pub(crate) repeatable: bool,
}

impl Complaint {
    pub(crate) fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), repeatable: kind.is_passing() }
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Malformed, message)
    }
}

impl WireFormat {
    /// Returns the wire.
    pub(crate) fn wire(self) -> &'static dyn Wire {
        match self {
            Self::Gemini => &gemini::Gemini,
            Self::OpenAiResponses => &openai_responses::OpenAiResponses,
            Self::OpenAiChat => &openai_chat::OpenAiChat,
            Self::Anthropic => &anthropic::Anthropic,
        }
    }
}

/// What a status means where the provider's words do not say more.
pub(crate) fn kind_of_status(status: u16) -> ModelErrorKind {
    match status {
        401 | 403 => ModelErrorKind::Authentication,
        404 => ModelErrorKind::NotFound,
        429 => ModelErrorKind::RateLimited,
        408 | 500..=599 => ModelErrorKind::Server,
        _ => ModelErrorKind::Rejected,
    }
}
