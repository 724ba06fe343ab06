//! A model server for tests and benchmarks.
//!
//! [`ModelServer`] listens on loopback and speaks the four wire formats as server-sent events: `OpenAI`'s
//! chat completions and Responses, Anthropic's Messages, and Gemini's `streamGenerateContent`. A test
//! says *what* the model answers, as a [`Reply`]; the server writes it in whichever [`Wire`] the request
//! came in, so one script serves all four. What can go wrong is part of the script as well: a
//! [`Reaction`] can be late, slow, cut, garbled, silent, or an error shaped as the provider shapes it.
//!
//! HTTP is written by hand on TCP, because a test must decide every byte, and the moment a connection
//! ends, and because a benchmark needs ten thousand connections to cost little. Answers are always
//! streamed: a request that does not ask for a stream is told so with a 400.
//!
//! ```
//! use convoke_testkit::{Failure, ModelServer, Point, Reaction, Reply, Wire};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let server = ModelServer::start([
//!     Reaction::failure(Failure::RateLimited),
//!     Reaction::answer(Reply::default().call("read_file", json!({ "path": "a.txt" }))),
//!     Reaction::answer(Reply::text("It says hello.")).cut(Point::InText),
//! ])
//! .await?;
//! assert!(server.base_url(Wire::OpenAiChat).ends_with("/v1"));
//! assert!(server.requests().is_empty());
//! # Ok(())
//! # }
//! ```

#[cfg(target_os = "linux")]
pub mod bypass;
mod connection;
mod event;
mod failure;
mod gzip;
mod http;
mod listing;
mod plan;
mod prepared;
mod reaction;
mod record;
mod render;
mod reply;
mod response;
mod script;
mod seen;
mod server;
mod skip;
#[cfg(feature = "tls")]
mod tls;
mod tool_loop;
mod wire;

pub use failure::Failure;
pub use prepared::Prepared;
pub use reaction::{Point, Reaction};
pub use record::Counts;
pub use reply::{Reply, Say, Stop};
pub use script::Script;
pub use seen::Seen;
pub use server::{ModelServer, Options};
pub use skip::skip;
#[cfg(feature = "tls")]
pub use tls::Authority;
pub use tool_loop::ToolLoop;
pub use wire::Wire;
