//! The exchange: one request in, one answer out, whatever lies between.
//!
//! A client is two HTTP clients, one for hosts that are trusted and one that connects to public
//! addresses only. Which of them carries a request is decided for each hop of a chain of redirects
//! anew. Both are made when they are first needed; until then a [`HttpClient`] is only its settings.

use std::fmt;
use std::sync::Arc;

use convoke_core::ToolError;
use convoke_tool::ToolContext;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use tokio::sync::OnceCell;

use super::body::{BodyEnd, read_body};
use super::decode::decode_text;
use super::failure::explain;
use super::guard::{AnyAddress, Guard, PublicOnly, Trust};
use super::redirect::next_request;
use super::request::{HttpRequest, HttpUrl};
use super::settings::HttpSettings;

/// Makes HTTP requests under one set of rules. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct HttpClient {
    settings: Arc<HttpSettings>,
    guard: Arc<Guard>,
    connections: Arc<Connections>,
}

/// The two clients, made when they are first needed.
#[derive(Default)]
struct Connections {
    anywhere: OnceCell<Client>,
    public_only: OnceCell<Client>,
}

impl HttpClient {
    /// Makes a client. Nothing is loaded or opened before its first request.
    pub fn new(settings: HttpSettings) -> Self {
        Self {
            guard: Arc::new(Guard::new(&settings)),
            settings: Arc::new(settings),
            connections: Arc::default(),
        }
    }

    /// Returns a client that may also reach this URL's host, on its port and no other.
    #[must_use]
    pub(crate) fn allowing(&self, url: &HttpUrl) -> Self {
        Self { guard: Arc::new(self.guard.allowing(url)), ..self.clone() }
    }

    /// Sends a request, follows redirects and reads the answer.
    pub(crate) async fn send(
        &self,
        request: HttpRequest,
        context: &ToolContext,
    ) -> Result<HttpResponse, ToolError> {
        let arrived = tokio::select! {
            biased;
            () = context.cancelled() => return Err(ToolError::cancelled("the request was stopped")),
            arrived = Box::pin(self.follow(request, context)) => arrived?,
        };
        let Arrived { url, redirected, response } = arrived;
        let (status, headers) = (response.status(), response.headers().clone());
        let limit = self.settings.max_body_bytes;
        let (body, end) = read_body(response, &url, limit, context).await;
        Ok(HttpResponse { url, redirected, status, headers, body, end })
    }

    async fn follow(
        &self,
        mut request: HttpRequest,
        context: &ToolContext,
    ) -> Result<Arrived, ToolError> {
        let limit = self.settings.max_redirects;
        let mut followed = 0;
        loop {
            let response = self.exchange(&request, context).await?;
            let next = match limit {
                0 => None,
                _ => next_request(&request, response.status(), response.headers())?,
            };
            let Some(next) = next else {
                return Ok(Arrived { url: request.url, redirected: followed > 0, response });
            };
            if followed == limit {
                let last = &next.url;
                return Err(ToolError::failed(format!(
                    "gave up after {limit} redirects; the last one leads to {last}"
                )));
            }
            self.decide_again(&request, &next, context).await?;
            followed += 1;
            request = next;
        }
    }

    /// Has the policy decide about the next request where it leaves the host of the last one. That the
    /// same host goes on encrypted, on the usual port for that, is no other host.
    async fn decide_again(
        &self,
        last: &HttpRequest,
        next: &HttpRequest,
        context: &ToolContext,
    ) -> Result<(), ToolError> {
        let (Some(from), Some(to)) = (last.url.endpoint(), next.url.endpoint()) else {
            return Err(ToolError::permission(format!(
                "Access denied: {} redirects to {}, whose host cannot be compared with rules",
                last.url, next.url
            )));
        };
        let is_upgrade = from.host() == to.host()
            && (from.port(), to.port()) == (Some(80), Some(443))
            && next.url.is_encrypted();
        if from == to || is_upgrade { Ok(()) } else { context.decide_host(&to).await }
    }

    /// Sends one request and waits for the head of its answer.
    async fn exchange(
        &self,
        request: &HttpRequest,
        context: &ToolContext,
    ) -> Result<Response, ToolError> {
        let trust = self.guard.trust(&request.url)?;
        let client = self.client(trust, context).await?;
        let mut outgoing = client
            .request(request.method.0.clone(), request.url.as_url().clone())
            .headers(request.headers.0.clone());
        if let Some(body) = &request.body {
            outgoing = outgoing.body(body.clone());
        }
        outgoing.send().await.map_err(|error| explain(error, &request.url))
    }

    async fn client(&self, trust: Trust, context: &ToolContext) -> Result<&Client, ToolError> {
        let cell = match trust {
            Trust::Anywhere => &self.connections.anywhere,
            Trust::PublicOnly => &self.connections.public_only,
        };
        let user_agent = self.settings.user_agent.clone();
        // Certificates are read from files.
        cell.get_or_try_init(|| context.blocking(move || build(trust, &user_agent))).await
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpClient")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

fn build(trust: Trust, user_agent: &str) -> Result<Client, ToolError> {
    // Fails if there is a provider already, and then that one is used.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = Client::builder()
        .user_agent(user_agent)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy();
    let builder = match trust {
        Trust::Anywhere => builder.dns_resolver(AnyAddress),
        Trust::PublicOnly => builder.dns_resolver(PublicOnly),
    };
    builder.build().map_err(|error| {
        ToolError::unavailable("HTTP cannot be used here: the client could not be set up")
            .caused_by(&error)
    })
}

/// The head of an answer, at the end of all redirects.
struct Arrived {
    url: HttpUrl,
    redirected: bool,
    response: Response,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    /// Where it came from in the end.
    pub(crate) url: HttpUrl,
    /// Whether that is somewhere else than the request said.
    pub(crate) redirected: bool,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// What was read of the body.
    pub(crate) body: Vec<u8>,
    /// Why it ends there.
    pub(crate) end: BodyEnd,
}

impl HttpResponse {
    pub(super) fn content_type(&self) -> &str {
        self.header(CONTENT_TYPE.as_str()).unwrap_or_default()
    }

    /// Returns a header, if it is there and readable.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the body as text, whatever it is.
    pub(crate) fn text(&self) -> String {
        decode_text(&self.body, self.content_type())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_set_up_for_a_request_that_is_refused() {
        let client = HttpClient::new(HttpSettings::default());
        let context = ToolContext::builder("task").build();
        let url = HttpUrl::parse("http://127.0.0.1/").unwrap();
        assert!(client.send(HttpRequest::get(url.clone()), &context).await.is_err());
        assert!(client.connections.public_only.get().is_none());

        let allowing = client.allowing(&url);
        assert!(allowing.client(Trust::Anywhere, &context).await.is_ok());
        assert!(client.connections.anywhere.get().is_some());
        assert!(client.connections.public_only.get().is_none());
    }
}
