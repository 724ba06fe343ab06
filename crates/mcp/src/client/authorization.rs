//! Who tells a remote server who asks.
//!
//! The client knows nothing of tokens. It asks for headers before each request, and when a server
//! wants others it says so, with what it had sent. How often that helps is up to whoever knows the
//! tokens, within a limit.

use std::fmt::{self, Debug};

use async_trait::async_trait;

use super::http::without_secrets;
use crate::auth::Secret;

/// Knows the headers that tell servers who asks. Not asked about a server whose configuration has an
/// `Authorization` header: that one says it already.
#[async_trait]
pub trait Authorization: Send + Sync + Debug {
    /// Returns the headers for a request to this server; none, if the server has asked for none yet. If
    /// they cannot be had, says for a person what has to be done first, and nothing is sent.
    async fn headers(&self, server: &Remote) -> Result<Vec<(String, Secret)>, String>;

    /// A request was refused. Returns once better headers are to be had, and the request is made once
    /// more; or says, for a person, what has to be done first.
    async fn refused(&self, server: &Remote, refusal: Refusal) -> Result<(), String>;
}

/// A server that is asked over HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// What it is called here.
    pub name: String,
    /// Its address.
    pub url: String,
}

/// There may be a key in an address.
impl Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, url } = self;
        let url = without_secrets(url);
        formatter.debug_struct("Remote").field("name", name).field("url", &url).finish()
    }
}

/// How a server refused a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// 401, or 403.
    pub status: u16,
    /// What its `WWW-Authenticate` header says, where there is one.
    pub challenge: Option<String>,
    /// What [`Authorization::headers`] had given for the request. Another request may have got better ones
    /// since.
    pub sent: Vec<(String, Secret)>,
}

/// The longest piece of a server's own words in a message.
const LONGEST_SAYING: usize = 300;

impl Refusal {
    /// Returns what the server answered, in short.
    pub(super) fn said(&self) -> String {
        let status = self.status;
        match &self.challenge {
            None => format!("HTTP {status}"),
            Some(text) => {
                let text: String = text.chars().take(LONGEST_SAYING).collect();
                format!("HTTP {status} ({text})")
            }
        }
    }
}
