//! OpenAI's Responses, without its memory: the whole conversation is sent each time, and nothing is
//! stored (`store: false`).
//!
//! - A model that reasons hands out its reasoning encrypted, if asked to, and goes on from there when it
//!   gets it back. Each such item is kept as an opaque part before what it led to, with its summary as
//!   a thought for people. It is asked for, and sent back, where the name is that of a reasoning model
//!   of OpenAI or an effort is set; other models refuse both.
//! - Newer models label what they say as commentary or as the final answer, and want the label back;
//!   it is kept before the text in the same way.
//! - Effort, and with it a summary of the reasoning, is asked for only if somebody set it. There is no
//!   budget for thinking on this wire; one is not sent.
//! - The result of a call may contain images here.

mod decode;
mod encode;
mod items;
#[cfg(test)]
mod tests;

use convoke_core::ModelFacts;

use super::{Complaint, Decoder, Outgoing, Wire, openai};
use crate::request::Request;

/// Whose opaque parts are ours.
const PROVIDER: &str = "openai_responses";

pub(super) struct OpenAiResponses;

impl Wire for OpenAiResponses {
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        openai::headers(key)
    }

    fn encode(&self, model: &str, _: &ModelFacts, request: &Request<'_>) -> Outgoing {
        Outgoing { path: "responses".to_owned(), body: encode::body(model, request) }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::ResponsesDecoder>::default()
    }

    fn error(&self, status: u16, body: &[u8]) -> Complaint {
        openai::error::of_answer(status, body)
    }
}
