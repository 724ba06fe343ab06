//! One request and one answer, as this module sees HTTP.
//!
//! A trait, so that a test can stand in for any server of the internet. What it shows of itself holds no
//! secret: headers and bodies are where tokens travel.

use std::fmt;

use async_trait::async_trait;
use url::Url;

use super::secret::Secret;

/// Carries requests.
#[async_trait]
pub trait Http: Send + Sync + fmt::Debug {
    /// Sends one request and returns the answer to it. Follows no redirect, reads no more than a limit,
    /// and waits no longer than a deadline.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError>;
}

/// How a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Something is fetched.
    Get,
    /// Something is handed in.
    Post,
}

/// Which addresses a request may be sent to. The name in its URL was judged already; this is for the
/// addresses that the name turns out to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those of the public internet.
    Public,
    /// Those of the public internet and of private networks.
    Private,
    /// Those of this machine.
    Loopback,
    /// Any: it is where the user sent us.
    Anywhere,
}

/// A request.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpRequest {
    /// How.
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// The headers, by name.
    pub headers: Vec<(String, Secret)>,
    /// What is handed in.
    pub body: Secret,
    /// Which addresses it may be sent to.
    pub reach: Reach,
}

impl HttpRequest {
    pub(super) fn get(url: Url, reach: Reach) -> Self {
        let headers = vec![("Accept".to_owned(), Secret::new("application/json"))];
        Self { method: Method::Get, url, headers, body: Secret::new(""), reach }
    }

    pub(super) fn post(url: Url, reach: Reach, content_type: &str, body: Secret) -> Self {
        Self { method: Method::Post, body, ..Self::get(url, reach) }
            .header("Content-Type", Secret::new(content_type))
    }

    pub(super) fn header(mut self, name: &str, value: Secret) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value));
        self
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        url.set_query(None);
        formatter
            .debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &url.as_str())
            .field("reach", &self.reach)
            .finish_non_exhaustive()
    }
}

/// An answer.
#[derive(Clone)]
pub struct HttpResponse {
    /// Its status.
    pub status: u16,
    /// Its headers, by name.
    pub headers: Vec<(String, String)>,
    /// What it says.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// Returns a header; several of one name with commas between them.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        let values = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpResponse")
            .field("status", &self.status)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// No answer came. The text says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HttpError(String);

impl HttpError {
    /// Says why no answer came. The text must hold no secret.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}
