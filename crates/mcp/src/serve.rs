//! Tools and agents of Convoke as an MCP server, over standard streams or HTTP.
//!
//! An [`Offer`] says which tools there are and carries out their calls; [`ToolOffer`] is the one over
//! the pipeline every call of Convoke passes through. A [`Service`] is an offer with a name, and
//! [`serve_stdio`] and [`serve_http`] let clients reach it. Both speak every revision of the protocol:
//! those that begin with a handshake, and those where each request stands alone.
//!
//! What holds on every way in: a call is answered once or, if its client took it back, not at all; a
//! call whose client is gone is told to stop; nothing a client sends makes the server keep more than
//! its [`ServeLimits`] say; and what is cut from an answer is said in it.

mod answer;
mod declare;
mod extras;
mod handler;
mod http;
mod lines;
mod offer;
mod progress;
mod service;
mod stdio;
mod tasks;
mod tools;
mod watch;

pub use extras::{Asker, Extras, RequestError};
pub use http::{HttpSettings, serve_http};
pub use offer::{CallHandle, Offer};
pub use progress::ProgressSink;
pub use service::{ServeError, ServeLimits, Service};
pub use stdio::serve_stdio;
pub use tools::ToolOffer;
pub use watch::{CallWatch, told};
