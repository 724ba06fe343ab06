//! Google's `streamGenerateContent`.
//!
//! - **Whatever changes from request to request comes after the conversation**, so a whole body, up to
//!   the end of its conversation, starts the next one. The provider caches prefixes by itself.
//! - **Turns.** The results of one turn's calls stand together in one content, and nothing else does:
//!   the provider counts its parts against the calls. Other messages are contents of their own; the
//!   provider does not insist that roles take turns.
//! - **Names.** A result is matched by the name of its function, which is looked up in the conversation.
//!   An id goes back only where the provider gave one.
//! - **Signatures** belong to the part they came with. They are kept as [`Part::Opaque`] before that part,
//!   together with the call's id: `{"thoughtSignature": …, "id": …}`. Parts with a signature are never
//!   joined with others.
//! - **Generations.** Since its third, Gemini wants a signature on the first call of every step, also in
//!   histories that it did not write, and takes media inside of results. Both follow from the model's
//!   name, since older ones refuse them.
//!
//! [`Part::Opaque`]: convoke_core::Part::Opaque

mod contents;
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
const NAME: &str = "gemini";

/// The keys of what is kept in opaque parts.
const SIGNATURE: &str = "thoughtSignature";
const ID: &str = "id";

/// Google's `streamGenerateContent`.
pub(super) struct Gemini;

impl Wire for Gemini {
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-goog-api-key", key.to_owned())).into_iter().collect()
    }

    fn encode(&self, model: &str, _: &ModelFacts, request: &Request<'_>) -> Outgoing {
        Outgoing { path: path(model), body: encode::body(model, request) }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::Reader>::default()
    }

    fn error(&self, status: u16, body: &[u8]) -> Complaint {
        let body_json = serde_json::from_slice::<Value>(body).ok();
        // Where events were not asked for, the provider wraps the error in a list.
        let body_json = body_json.as_ref().map(|body| body.get(0).unwrap_or(body));
        match body_json.and_then(|body| body.get("error")) {
            Some(error) => complaint(error, Some(status)),
            None => Complaint::new(kind_of_status(status), json::gist(body)),
        }
    }
}

/// Returns the path of a model. Its name may say which collection it is in.
fn path(model: &str) -> String {
    let is_whole = model.starts_with("models/") || model.starts_with("tunedModels/");
    let collection = if is_whole { "" } else { "models/" };
    let mut path = format!("v1beta/{collection}");
    for byte in model.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/:@!$&'()*+,;=".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path.push_str(":streamGenerateContent?alt=sse");
    path
}

/// Says what an error means. One in the middle of an answer has its status inside.
fn complaint(error: &Value, status: Option<u16>) -> Complaint {
    let message = error.get("message").unwrap_or(error).as_str().unwrap_or("no message");
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let status = status.or(code).unwrap_or(500);
    let details = error.get("details").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let kind = if is_wrong_key(details) {
        ModelErrorKind::Authentication
    } else if message.contains("input token count")
        || message.contains("exceeds the maximum number of tokens")
    {
        ModelErrorKind::ContextTooLong
    } else if status == 429 && (is_none_granted(message) || is_daily(details)) {
        ModelErrorKind::Quota
    } else {
        kind_of_status(status)
    };
    Complaint::new(kind, json::words(message))
}

/// A wrong key is an invalid argument to the provider (400).
fn is_wrong_key(details: &[Value]) -> bool {
    details.iter().any(|detail| {
        detail.get("reason").and_then(Value::as_str).is_some_and(|it| it == "API_KEY_INVALID")
    })
}

/// A limit of zero is not one that waiting helps with: the account's plan does not have this model.
fn is_none_granted(message: &str) -> bool {
    let mut after = message.split("limit: 0").skip(1);
    after.any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit() || next == '.'))
}

fn is_daily(details: &[Value]) -> bool {
    let violations = details.iter().filter_map(|detail| detail.get("violations")?.as_array());
    let mut quotas =
        violations.flatten().filter_map(|violation| violation.get("quotaId")?.as_str());
    quotas.any(|quota| quota.contains("PerDay"))
}
