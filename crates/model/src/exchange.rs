//! One attempt: a request is sent, and its answer is read as it comes.

mod reading;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use crate::endpoint::Endpoint;
use crate::error::{ModelError, ModelErrorKind};
use crate::gate::{ClosedFor, Gate, Pass};
use crate::model::{Chunk, ModelStream, Retry};
use crate::retry::seconds;
use crate::transport::Transport;
use crate::wait::wanted_wait;
use crate::wire::{Complaint, json, kind_of_status};
use reading::Reading;

/// How much of an answer that is an error is read.
const LONGEST_ERROR: usize = 64 * 1024;
/// How long the rest of an error may take: what has come by then has to do.
const ERROR_PATIENCE: Duration = Duration::from_secs(10);

/// How long a request waits for the rate limiter before that is said.
const SILENT_WAIT: Duration = Duration::from_secs(1);

/// A request at the gate.
type Entering = Pin<Box<dyn Future<Output = Result<Pass, ClosedFor>> + Send>>;

/// A request that can be sent any number of times.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) transport: Transport,
    pub(crate) gate: Arc<Gate>,
    pub(crate) url: Url,
    pub(crate) body: Bytes,
}

enum Phase {
    Opening,
    /// At the gate for so long that it was said.
    Waiting(Entering),
    Reading(Box<Reading>),
    Over,
}

impl Exchange {
    /// Sends the request and reads the answer, once.
    pub(crate) fn attempt(self) -> ModelStream {
        Box::pin(stream::unfold((self, Phase::Opening), |(exchange, phase)| async {
            let (item, phase) = match phase {
                Phase::Over => return None,
                Phase::Opening => {
                    let mut entering = exchange.enter();
                    match timeout(SILENT_WAIT, &mut entering).await {
                        Ok(entered) => exchange.begin(entered).await,
                        Err(_) => (Ok(exchange.says_it_waits()), Phase::Waiting(entering)),
                    }
                }
                Phase::Waiting(entering) => {
                    let entered = entering.await;
                    exchange.begin(entered).await
                }
                Phase::Reading(reading) => reading.step().await,
            };
            Some((item, (exchange, phase)))
        }))
    }

    fn enter(&self) -> Entering {
        let (gate, longest) = (self.gate.clone(), self.transport.retry().max_wait);
        Box::pin(async move { gate.enter(longest).await })
    }

    /// Nobody likes a silence that is not explained. Which attempt it is, whoever counts them knows.
    fn says_it_waits(&self) -> Chunk {
        let (delay, reason) = match self.gate.closed_now() {
            Some(wait) => (wait, "the rate limit of the key was reached"),
            None => (Duration::ZERO, "other requests with this key come first"),
        };
        let reason = format!("{}: {reason}", self.endpoint.provider.name);
        Chunk::Retry(Retry { attempt: 1, delay, reason, accepted: false, received_bytes: 0 })
    }

    async fn begin(&self, entered: Result<Pass, ClosedFor>) -> (Result<Chunk, ModelError>, Phase) {
        match self.open(entered).await {
            Ok(reading) => Box::new(reading).step().await,
            Err(error) => (Err(error), Phase::Over),
        }
    }

    async fn open(&self, entered: Result<Pass, ClosedFor>) -> Result<Reading, ModelError> {
        let endpoint = &self.endpoint;
        let mut pass = entered.map_err(|ClosedFor(wait)| {
            let mut error = endpoint.error(
                ModelErrorKind::RateLimited,
                "the rate limit was reached by an earlier request",
            );
            error.retry_after = Some(wait);
            error
        })?;
        let begin_by = reading::after(self.transport.timeouts().first_byte);
        let response = self.send(begin_by).await?;
        let status = response.status();
        if !status.is_success() {
            let error = refused(endpoint, response).await;
            if error.status == Some(429) && error.kind == ModelErrorKind::RateLimited {
                pass.refused(error.retry_after);
            }
            return Err(error);
        }
        pass.accepted();
        if is_document(&response) {
            return Err(not_a_stream(endpoint, response).await);
        }
        Ok(Reading::new(endpoint.clone(), &self.transport, response, pass, begin_by))
    }

    async fn send(&self, begin_by: Instant) -> Result<Response, ModelError> {
        let endpoint = &self.endpoint;
        let client = self.transport.client(&self.url).await;
        let client = client.map_err(|error| endpoint.unusable(&error))?;
        let request = client
            .post(self.url.clone())
            .headers(endpoint.headers.clone())
            .body(self.body.clone())
            .send();
        match timeout_at(begin_by, request).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let proxy = self.transport.proxy_for(&self.url);
                let mut error = endpoint.fail_through(error, proxy.as_deref());
                error.stale &= self.gate.may_reuse();
                Err(error)
            }
            Err(_) => Err(never_began(endpoint, self.transport.timeouts().first_byte)),
        }
    }
}

/// The provider may be at work on the answer, and bill it: asking again would only double that.
fn never_began(endpoint: &Endpoint, patience: Duration) -> ModelError {
    let (place, patience) = (endpoint.place(), seconds(patience));
    let message = format!("{place} did not begin to answer within {patience}");
    let error = endpoint.error(ModelErrorKind::Silent, message).after_receiving(0);
    ModelError { repeatable: false, ..error }
}

fn redirected(endpoint: &Endpoint, response: &Response) -> ModelError {
    let to = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let mut error = match to.and_then(|to| response.url().join(to).ok()) {
        Some(mut to) => {
            to.set_query(None);
            endpoint
                .error(
                    ModelErrorKind::Rejected,
                    format!("a redirect to {to}, which is not followed"),
                )
                .hint("a key is not sent to another address; set the base URL to the right one")
        }
        None => endpoint.error(ModelErrorKind::Rejected, "a redirect that does not say where to"),
    };
    error.status = Some(response.status().as_u16());
    error
}

/// Reads an answer that is an error.
pub(crate) async fn refused(endpoint: &Endpoint, mut response: Response) -> ModelError {
    let status = response.status();
    if status.is_redirection() {
        return redirected(endpoint, &response);
    }
    let body = read_beginning(&mut response).await;
    let mut complaint = endpoint.wire.error(status.as_u16(), &body);
    if complaint.kind == ModelErrorKind::Malformed {
        // The body says nothing a provider would say, so the status has to.
        complaint = Complaint::new(kind_of_status(status.as_u16()), complaint.message);
    }
    // Pages of proxies begin with the status, which is said anyway.
    let words = complaint.message.trim().trim_start_matches(status.as_str()).trim_start();
    complaint.message = match words {
        "" | "{}" | "[]" => status.canonical_reason().unwrap_or_default().to_owned(),
        words => words.to_owned(),
    };
    let mut error = endpoint.complain(complaint);
    error.status = Some(status.as_u16());
    error.retry_after = wanted_wait(response.headers(), &body);
    error
}

/// Tells whether an answer says of itself that it is not a stream of events.
fn is_document(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| {
        let kind = kind.to_ascii_lowercase();
        kind.starts_with("application/json") || kind.starts_with("text/html")
    })
}

/// Explains an answer that looks like a success but is a document: an error in JSON, a login page.
async fn not_a_stream(endpoint: &Endpoint, mut response: Response) -> ModelError {
    let status = response.status().as_u16();
    let body = read_beginning(&mut response).await;
    let is_error = serde_json::from_slice::<serde_json::Value>(&body)
        .is_ok_and(|body| body.pointer("/error").or_else(|| body.pointer("/0/error")).is_some());
    let mut error = if is_error {
        endpoint.complain(endpoint.wire.error(status, &body))
    } else {
        not_understood(endpoint, &body)
    };
    error.status = Some(status);
    error
}

fn not_understood(endpoint: &Endpoint, beginning: &[u8]) -> ModelError {
    let message = format!("the answer is not a stream of events: {}", json::gist(beginning));
    endpoint
        .error(ModelErrorKind::Malformed, message)
        .hint(format!("is {} the right address?", endpoint.shown()))
}

/// Reads as much of a body as is needed to explain it.
pub(crate) async fn read_beginning(response: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            let room = LONGEST_ERROR.saturating_sub(body.len());
            body.extend(bytes.iter().take(room));
            if body.len() == LONGEST_ERROR {
                break;
            }
        }
    };
    // What has come by then has to do.
    drop(timeout(ERROR_PATIENCE, read).await);
    body
}
