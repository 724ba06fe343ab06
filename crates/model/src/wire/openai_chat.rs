//! OpenAI's chat completions, which many servers speak, each a little differently.
//!
//! - Where the two ways part, the model's name decides: see [`super::openai::family`].
//! - A `tool` message carries text only. Images of a result follow in a user message that says which
//!   call they belong to. There is no error flag either; the text of a failed call says so itself.
//! - Thoughts come as `reasoning_content` or `reasoning` and are for people: they do not go back,
//!   unless the provider insists.
//! - There is no budget for thinking on this wire, only an effort; a budget is not sent.

mod calls;
mod decode;
mod encode;
#[cfg(test)]
mod tests;
mod usual;

use convoke_core::ModelFacts;

use super::{Complaint, Decoder, Outgoing, Wire, openai};
use crate::request::Request;

pub(super) struct OpenAiChat;

impl Wire for OpenAiChat {
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        openai::headers(key)
    }

    fn encode(&self, model: &str, _: &ModelFacts, request: &Request<'_>) -> Outgoing {
        Outgoing { path: "chat/completions".to_owned(), body: encode::body(model, request) }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::ChatDecoder>::default()
    }

    fn error(&self, status: u16, body: &[u8]) -> Complaint {
        openai::error::of_answer(status, body)
    }
}
