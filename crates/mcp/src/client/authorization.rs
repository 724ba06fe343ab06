//! Who tells a remote server who asks.
//!
//! The client knows nothing of tokens. It asks for headers before each request, and when a server
//! wants others it says so, once a request.

use std::fmt::Debug;

use async_trait::async_trait;

/// Knows the headers that tell servers who asks.
#[async_trait]
pub trait Authorization: Send + Sync + Debug {
    /// Returns the headers for a request to this server; none, if none are known.
    async fn headers(&self, server: &Remote) -> Vec<(String, String)>;

    /// A request was refused. Returns once better headers are to be had, and the request is made once
    /// more; or says, for a person, what has to be done first.
    async fn refused(&self, server: &Remote, refusal: Refusal) -> Result<(), String>;
}

/// A server that is asked over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// What it is called here.
    pub name: String,
    /// Its address.
    pub url: String,
}

/// How a server refused a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// 401, or 403.
    pub status: u16,
    /// What its `WWW-Authenticate` header says, where there is one.
    pub challenge: Option<String>,
}
