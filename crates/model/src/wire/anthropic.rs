//! Anthropic's Messages.
//!
//! - **Caching is switched on by markers.** One stands on the instructions, which also covers the tools.
//!   The one that moves with the conversation is the request's own `cache_control`: the provider puts
//!   it on the last block by itself, so no marker ever appears in, or vanishes from, an earlier message.
//! - **Whatever changes from request to request comes after the conversation**, so a whole body, up to
//!   the end of its conversation, starts the next one.
//! - **Turns.** Everything said between two answers of the model is one user turn, results first: the
//!   provider wants all results of a turn's calls together at its start.
//! - **Signed thoughts** are kept as whole blocks in [`Part::Opaque`] and sent back unchanged, all of
//!   them: the provider leaves out those it no longer needs. The [`Part::Thought`] after it is for people.
//! - **A forced call cannot be thought about**: where a tool is named, thinking is switched off for that
//!   request, since the provider refuses the two together.
//!
//! [`Part::Opaque`]: convoke_core::Part::Opaque
//! [`Part::Thought`]: convoke_core::Part::Thought

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use convoke_core::ModelFacts;
use serde_json::Value;

use super::{Complaint, Decoder, Outgoing, Wire, json, kind_of_status};
use crate::error::ModelErrorKind;
use crate::request::Request;

/// The wire's name in opaque parts.
const NAME: &str = "anthropic";

/// The version of the wire.
const VERSION: &str = "2023-06-01";

/// Anthropic's Messages.
pub(super) struct Anthropic;

impl Wire for Anthropic {
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("x-api-key", key.to_owned()));
        key.into_iter().chain([("anthropic-version", VERSION.to_owned())]).collect()
    }

    fn encode(&self, model: &str, facts: &ModelFacts, request: &Request<'_>) -> Outgoing {
        let body = encode::body(model, facts.max_output, request);
        Outgoing { path: "v1/messages".to_owned(), body }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::Reader>::default()
    }

    fn error(&self, status: u16, body: &[u8]) -> Complaint {
        match serde_json::from_slice::<Value>(body).ok().and_then(|body| said(&body)) {
            Some((word, message)) => complaint(&word, &message, Some(status)),
            None => complaint("", &json::gist(body), Some(status)),
        }
    }
}

/// Finds the kind and the message of an error.
fn said(body: &Value) -> Option<(String, String)> {
    let error = body.get("error").unwrap_or(body);
    let message = error.get("message").unwrap_or(error).as_str()?;
    let word = error.get("type").and_then(Value::as_str).unwrap_or_default();
    Some((word.to_owned(), message.to_owned()))
}

/// Says what an error means: first by its message, where that is more exact, then by its kind.
fn complaint(word: &str, message: &str, status: Option<u16>) -> Complaint {
    let kind = match word {
        _ if is_too_long(message) => ModelErrorKind::ContextTooLong,
        _ if message.contains("credit balance is too low") => ModelErrorKind::Quota,
        "exceed_context_size_error" | "request_too_large" => ModelErrorKind::ContextTooLong,
        "billing_error" => ModelErrorKind::Quota,
        "authentication_error" | "permission_error" => ModelErrorKind::Authentication,
        "not_found_error" => ModelErrorKind::NotFound,
        "rate_limit_error" => ModelErrorKind::RateLimited,
        "overloaded_error" | "api_error" | "timeout_error" => ModelErrorKind::Server,
        _ => match status {
            Some(413) => ModelErrorKind::ContextTooLong,
            Some(status) => kind_of_status(status),
            None if word == "invalid_request_error" => ModelErrorKind::Rejected,
            None => ModelErrorKind::Server,
        },
    };
    Complaint::new(kind, json::words(message))
}

fn is_too_long(message: &str) -> bool {
    message.contains("prompt is too long") || message.contains("exceed context limit")
}
