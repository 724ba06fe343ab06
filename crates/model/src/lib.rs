//! Language models behind one small trait.
//!
//! A [`Model`] takes a [`Request`] (instructions, tool declarations, the conversation) and gives back a
//! stream of [`Chunk`]s that ends with one whole [`Answer`]. This crate knows how to talk to providers,
//! how to wait and try again, what a token costs, and how to record and replay; it knows tools by their
//! declarations only, and decides nothing about a run.
//!
//! Two things every implementation keeps:
//!
//! - **The same request gives the same bytes.** Nothing volatile enters a request, and a conversation
//!   that grew by some messages starts with the bytes it had before, so that the caches of providers
//!   hold.
//! - **What was said is not said twice.** A request is repeated only while no word of its answer has been
//!   handed out; each repeat is a [`Chunk::Retry`].
//!
//! | module | owns |
//! | --- | --- |
//! | [`model`] | the trait, chunks and answers |
//! | [`request`] | what a model is asked |
//! | [`name`] | `provider/model` |
//! | [`error`] | what went wrong, whose word it is, and what to do |
//! | [`provider`] | a model behind HTTP: address, key, wire, limits |
//! | `wire` | the four wire formats, as pure encoders and decoders |
//! | [`transport`], `endpoint`, `exchange`, `sse` | HTTP clients, and one streamed exchange over them |
//! | `failure`, `wait` | what an HTTP failure means, how long a provider wants to be left alone |
//! | [`retry`], [`gate`] | repeats, one rate limiter per key |
//! | [`discover`] | which models a provider has |
//! | [`catalogue`] | prices and windows, from a data file |
//! | [`snapshot`] | a request that can be kept |
//! | [`scripted`] | a model that says what a test tells it |
//! | [`cassette`] | record a model's answers, replay them strictly |

pub mod cassette;
pub mod catalogue;
pub mod discover;
mod endpoint;
pub mod error;
mod exchange;
mod failure;
pub mod gate;
pub mod model;
pub mod name;
pub mod provider;
mod proxy;
pub mod request;
pub mod retry;
pub mod scripted;
pub mod snapshot;
mod sse;
#[cfg(test)]
mod testing;
pub mod transport;
mod wait;
mod wire;

pub use cassette::{CassetteError, Recording, Replay};
pub use catalogue::Catalogue;
pub use discover::{ListedModel, list_models, model_to_chat_with};
pub use error::{ModelError, ModelErrorKind};
pub use gate::Limits;
pub use model::{Answer, Chunk, Model, ModelStream, Retry, StopReason};
pub use name::{ModelName, NameError};
pub use provider::{KNOWN_PROVIDERS, KnownProvider, Provider, ProviderModel, WireFormat};
pub use request::{Effort, OutputSchema, Request, Settings, ToolChoice};
pub use retry::RetryPolicy;
pub use scripted::{ScriptedModel, Turn};
pub use snapshot::{RequestSnapshot, SnapshotChoice};
pub use transport::{ProxySettings, Timeouts, Transport, TransportBuilder};
