//! The trait, and what comes out of it.

use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

pub use convoke_core::StopReason;
use convoke_core::{Message, ModelFacts, Usage};
use futures_util::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::name::ModelName;
use crate::request::Request;
use crate::retry::RetryPolicy;

/// An answer on its way: chunks, the last of which is [`Chunk::End`], or an error that ends it.
/// Dropping the stream closes the connection.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<Chunk, ModelError>> + Send>>;

/// Something that answers.
pub trait Model: Send + Sync + Debug {
    /// Returns its name.
    fn name(&self) -> &ModelName;

    /// Returns what is known about it: its window, its longest answer, its price.
    fn facts(&self) -> &ModelFacts;

    /// Returns how many times at most a request is made again that failed.
    fn retries(&self) -> u32 {
        RetryPolicy::default().max_attempts.saturating_sub(1)
    }

    /// Asks it. The request is turned into bytes before this returns; nothing is sent before the
    /// stream is polled.
    fn stream(&self, request: &Request<'_>) -> ModelStream;
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Chunk {
    /// More text.
    Text(String),
    /// More of the model's thinking.
    Thought(String),
    /// The model has begun to write a call of this tool; the call itself comes with the end. After a
    /// repeat it may be begun again.
    ToolCall {
        /// Which tool.
        name: String,
    },
    /// The model could not be reached and will be asked again.
    Retry(Retry),
    /// The whole answer. Nothing follows.
    End(Answer),
}

/// A repeat that is about to happen, or an attempt that waits longer than a moment for the rate limit of
/// its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Which attempt comes: from 2 for a repeat; 1 for the first, where that has to wait.
    pub attempt: u32,
    /// After how long; zero if that is at once or cannot be told.
    pub delay: Duration,
    /// Why.
    pub reason: String,
    /// Whether the provider took the attempt that failed, so that what it was sent is billed, as far as
    /// can be told from here.
    pub accepted: bool,
    /// How many bytes of an answer the attempt that failed had brought: calls, above all, since a repeat
    /// follows only where nothing was shown. An estimate of what is billed can be made of it.
    pub received_bytes: u64,
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// What the model said: text, thoughts, calls and what only its provider understands, in order.
    /// A call has the provider's id, or an empty one where the provider gave none.
    pub message: Message,
    /// What it used; all zero where the provider did not say. The cost is left out, since a provider
    /// does not say that.
    pub usage: Usage,
    /// Why it stopped. Whether there are calls is said by the message alone: providers disagree here.
    pub stop: StopReason,
}
