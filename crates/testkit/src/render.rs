//! Writes a reply as the events of a wire: the order, the names and the fields that each provider sends.

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

use crate::event::Event;
use crate::reply::Reply;
use crate::wire::Wire;

pub(crate) use openai_responses::failed_response;

/// A time in seconds for the fields that want one; the same always, so that answers are.
pub(crate) const CREATED: u64 = 1_750_000_000;

/// What a rendering needs to know of its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// The model that was asked for.
    pub(crate) model: &'a str,
    /// Which request it is, from 0; made-up ids are different in each.
    pub(crate) nth: usize,
    /// Whether a chat asked for its usage.
    pub(crate) include_usage: bool,
}

impl Context<'_> {
    /// Makes up an id.
    fn id(&self, prefix: &str) -> String {
        format!("{prefix}{:04}", self.nth)
    }

    /// Makes up the id of a part.
    fn part_id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}{:04}_{index}", self.nth)
    }
}

/// Writes a reply.
pub(crate) fn render(wire: Wire, reply: &Reply, context: Context<'_>) -> Vec<Event> {
    match wire {
        Wire::OpenAiChat => openai_chat::render(reply, context),
        Wire::OpenAiResponses => openai_responses::render(reply, context),
        Wire::Anthropic => anthropic::render(reply, context),
        Wire::Gemini => gemini::render(reply, context),
    }
}
