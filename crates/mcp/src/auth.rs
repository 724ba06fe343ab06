//! How a remote server is told who asks: OAuth, with tokens that only their owner can read.
//!
//! [`OAuth`] is all a transport needs: it asks for [headers](OAuth::headers) before a request, and hands
//! in what the server said when it [turned one away](OAuth::challenged). Everything between happens here:
//! finding the authorization server, registering, asking a person through [`Consent`], exchanging the
//! code, refreshing, asking for more when more is needed.
//!
//! What holds everywhere in this module:
//!
//! - A token, code, verifier, client secret or key is a [`Secret`] from the moment it is read. It is shown
//!   by no error and no `Debug`, and goes nowhere but to the server it is for.
//! - No address that a server names is trusted: see `guard`. No answer is longer, and no wait longer,
//!   than a limit.
//! - Nothing is read from the environment, no browser is opened, and the time comes from a clock that is
//!   handed in.
//! - Tokens are kept per server, address and issuer. An issuer never sees what another one gave.
//!
//! The protocol library has an OAuth client too. As of rmcp 3.8 it is not used: it writes authorization codes to the log,
//! reads the wall clock, keeps no client secret across restarts, refreshes again what another process has
//! just refreshed, and takes endpoints that are not encrypted.

mod answer;
mod assertion;
mod attempt;
mod challenge;
mod client;
mod consent;
mod discover;
mod error;
mod fetch;
mod guard;
mod http;
mod key;
mod listener;
mod metadata;
mod oauth;
mod patience;
mod random;
mod record;
mod register;
mod scope;
mod secret;
mod settings;
mod store;
mod token;
mod web;

pub use consent::Consent;
pub use error::AuthError;
pub use http::{Http, HttpError, HttpRequest, HttpResponse, Method, Reach};
pub use key::{BadKey, SigningKey};
pub use oauth::{OAuth, Retry};
pub use record::{ClientRecord, ClientSource, Record, TokenMethod, Tokens, UnreadableRecord};
pub use secret::Secret;
pub use settings::{AuthSettings, Deadlines, Grant, KnownClient, Network, Pkce};
pub use store::{FileStore, MemoryStore, StoreError, StoreLock, TokenStore};
pub(crate) use web::Within;
pub use web::{Web, WebSettings};
