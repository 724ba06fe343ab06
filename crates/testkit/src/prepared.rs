//! Answers that are written once and sent many times.

use std::sync::Arc;

use crate::plan::stream_bytes;
use crate::render::{Context, render};
use crate::reply::Reply;
use crate::wire::Wire;

/// A reply whose bytes are ready in every wire. It names one model whatever the request asks for, and a
/// chat always ends with its usage.
#[derive(Clone, Debug)]
pub struct Prepared {
    chat: Arc<[u8]>,
    responses: Arc<[u8]>,
    anthropic: Arc<[u8]>,
    gemini: Arc<[u8]>,
}

impl Prepared {
    /// Writes a reply in every wire.
    pub fn new(reply: &Reply) -> Self {
        Self::nth(reply, 0)
    }

    /// Writes a reply; made-up ids are different for each number.
    pub(crate) fn nth(reply: &Reply, nth: usize) -> Self {
        let context = Context { model: "test-model", nth, include_usage: true };
        let bytes = |wire| stream_bytes(&render(wire, reply, context)).into();
        Self {
            chat: bytes(Wire::OpenAiChat),
            responses: bytes(Wire::OpenAiResponses),
            anthropic: bytes(Wire::Anthropic),
            gemini: bytes(Wire::Gemini),
        }
    }

    /// Returns the whole HTTP answer.
    pub(crate) fn bytes(&self, wire: Wire) -> Arc<[u8]> {
        Arc::clone(match wire {
            Wire::OpenAiChat => &self.chat,
            Wire::OpenAiResponses => &self.responses,
            Wire::Anthropic => &self.anthropic,
            Wire::Gemini => &self.gemini,
        })
    }
}
