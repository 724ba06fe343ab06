//! Requests to servers over HTTP.
//!
//! The library decides what is sent and when; here it is sent, with the headers of the moment, and what
//! comes back is read up to a limit. A redirect is followed only to where the request was going anyway: a
//! header must not reach anybody else.

mod events;
mod sending;
mod shown;
mod standing;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use convoke_tool::Interlude;
use futures_util::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};

use tokio_util::sync::CancellationToken;

use self::sending::Outgoing;
use self::shown::Shown;
use self::standing::Standing;
use super::authorization::{Authorization, Remote};
use super::handler::Dirty;
use super::lines::MAX_MESSAGE_BYTES;
use super::message::read_message;
use crate::auth::{Reach, Within};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may take to answer whether it speaks without a handshake. An old one may not answer at
/// all, and nothing else can be asked over the library's transport meanwhile.
const DISCOVER_PATIENCE: Duration = Duration::from_secs(8);
const MAX_REDIRECTS: usize = 5;
/// How often a stream is asked for where nobody answers.
const MAX_UNANSWERED: usize = 5;
/// How much is read of an answer that only says what went wrong.
const MAX_COMPLAINT_BYTES: usize = 64 * 1024;
const SHOWN_BYTES: usize = 300;
/// What an answer that was cut off is failed with.
pub(super) const CUT_OFF: ErrorCode = ErrorCode(-32_098);

type Headers = HashMap<HeaderName, HeaderValue>;
type Outcome<T> = Result<T, StreamableHttpError<HttpFailure>>;

/// Why a request got no answer that could be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFailure {
    /// The server cannot be reached.
    #[error("it cannot be reached at {url}: {why}")]
    Unreachable { url: String, why: String },
    /// The connection broke after the request was sent.
    #[error("the connection to {url} broke: {why}")]
    Broken { url: String, why: String },
    /// It wants to know who asks; this is what a person has to do.
    #[error("{0}")]
    Unauthorized(String),
    /// It refused.
    #[error("it answered with HTTP {status}{said}")]
    Status { status: u16, said: String },
    /// It answered what nobody can read.
    #[error("its answer cannot be read: {0}")]
    Unreadable(String),
}

impl HttpFailure {
    /// Tells whether the server said no before it did anything.
    pub(super) fn was_refused(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Unauthorized(_) => true,
            Self::Status { status, .. } => {
                let (timed_out, unknown) =
                    (StatusCode::REQUEST_TIMEOUT, StatusCode::NOT_IMPLEMENTED);
                let is_client_error = (400..500).contains(status) && *status != timed_out.as_u16();
                is_client_error || (300..400).contains(status) || *status == unknown.as_u16()
            }
            Self::Broken { .. } | Self::Unreadable(_) => false,
        }
    }
}

/// On whose behalf requests are made.
#[derive(Clone, Default)]
pub(super) struct Caller {
    /// Who tells the server who asks.
    pub(super) authorization: Option<Arc<dyn Authorization>>,
    pub(super) interlude: Arc<Interlude>,
    /// What has to be read again when the server has forgotten us.
    pub(super) dirty: Arc<Dirty>,
    /// Says that nobody waits for anything any more.
    pub(super) given_up: CancellationToken,
}

/// Sends requests to one server. Cheap to clone.
#[derive(Clone)]
pub(super) struct HttpClient {
    client: Client,
    remote: Arc<Remote>,
    caller: Caller,
    standing: Arc<Standing>,
    /// Whether the server was greeted before.
    greeted: Arc<AtomicBool>,
    /// The last session in which a request was answered.
    proven: Arc<Mutex<Option<Arc<str>>>>,
    /// How often in a row nobody was there.
    unanswered: Arc<AtomicUsize>,
    shown: Arc<Shown>,
    limit: usize,
    patience: Duration,
}

impl HttpClient {
    pub(super) fn new(
        remote: Remote,
        reach: Reach,
        setup: &(dyn Fn(ClientBuilder) -> ClientBuilder + Send + Sync),
        caller: Caller,
    ) -> Result<Self, String> {
        // Fails if there is a provider already, and then that one is used.
        drop(rustls::crypto::ring::default_provider().install_default());
        let builder = Client::builder()
            .no_proxy()
            .tcp_nodelay(true)
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT);
        let builder = setup(builder).redirect(same_origin()).retry(reqwest::retry::never());
        let builder = match reach {
            Reach::Anywhere => builder,
            bounded => builder.dns_resolver(Within(bounded)),
        };
        let client = builder
            .build()
            .map_err(|error| format!("the HTTP client could not be set up: {}", root(&error)))?;
        let remote = Arc::new(remote);
        let (limit, patience) = (MAX_MESSAGE_BYTES, DISCOVER_PATIENCE);
        let (standing, greeted, proven, unanswered, shown) = Default::default();
        Ok(Self {
            client,
            remote,
            caller,
            standing,
            greeted,
            proven,
            unanswered,
            shown,
            limit,
            patience,
        })
    }

    /// Counts how often in a row nobody was there when a stream was to be taken up. Tells whether that was often
    /// enough.
    fn is_given_up(&self, sent: &Outcome<Option<Response>>) -> bool {
        let gone = matches!(
            sent,
            Err(StreamableHttpError::Client(
                HttpFailure::Unreachable { .. } | HttpFailure::Broken { .. }
            ))
        );
        if !gone {
            self.unanswered.store(0, Ordering::Release);
            return false;
        }
        self.unanswered.fetch_add(1, Ordering::AcqRel) + 1 >= MAX_UNANSWERED
    }

    /// Tells whether a request was answered in this session before.
    fn is_proven(&self, session: &str) -> bool {
        let proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        proven.as_deref() == Some(session)
    }

    fn lost(&self, error: &reqwest::Error) -> StreamableHttpError<HttpFailure> {
        let (url, why) = (without_secrets(&self.remote.url), root(error));
        StreamableHttpError::Client(if error.is_connect() {
            HttpFailure::Unreachable { url, why }
        } else {
            HttpFailure::Broken { url, why }
        })
    }

    /// Reads an answer as a whole; `None` if it is longer than may be read.
    async fn read(&self, response: Response, limit: usize) -> Outcome<Option<Bytes>> {
        let announced = response.content_length().unwrap_or_default();
        if announced > limit as u64 {
            return Ok(None);
        }
        let mut body = BytesMut::new();
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| self.lost(&error))?;
            if body.len() + piece.len() > limit {
                return Ok(None);
            }
            body.extend_from_slice(&piece);
        }
        Ok(Some(self.shown.hide_in_body(body.freeze())))
    }

    /// An answer that says no.
    async fn refused(
        &self,
        response: Response,
        asked: &ClientJsonRpcMessage,
        session: Option<&str>,
    ) -> Outcome<StreamableHttpPostResponse> {
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        let retry_after = text_of(&response, &RETRY_AFTER);
        let location = text_of(&response, &LOCATION).map(|text| self.shown.hide(text));
        let body = self.read(response, MAX_COMPLAINT_BYTES).await.unwrap_or_default();
        let body = body.unwrap_or_default();
        let refusal = match serde_json::from_slice(&body) {
            Ok(ServerJsonRpcMessage::Error(refusal)) => Some(refusal),
            _ => None,
        };
        // Who names the request has read it, and so knows the session.
        let is_answer = refusal
            .as_ref()
            .is_some_and(|refusal| refusal.id.is_some() && refusal.id == asked_id(asked));
        let error = refusal.map(|refusal| refusal.error);
        // The protocol wants 404 for it; many servers say 400. Once in a session: a new one may be refused as well,
        // and then what it says is told.
        if status == StatusCode::BAD_REQUEST
            && session.is_some_and(|session| self.is_proven(session))
            && !is_answer
            && is_about_the_session(&body)
        {
            return Err(StreamableHttpError::SessionExpired);
        }
        // An old server does not know the question, and may refuse it in any way it likes.
        let unknown = status.is_client_error()
            || matches!(status, StatusCode::INTERNAL_SERVER_ERROR | StatusCode::NOT_IMPLEMENTED);
        if let Some(id) = discovery(asked).filter(|_| unknown) {
            return Ok(fails(error.unwrap_or_else(unknown_here), id));
        }
        if let (Some(error), Some(id)) = (error, asked_id(asked)) {
            return Ok(fails(error, id));
        }
        if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
            return Err(HttpStatusError::new(status.as_u16(), retry_after).into());
        }
        let said = match location {
            Some(location) if status.is_redirection() => format!(
                " and wants to be asked at `{}`, which is somewhere else: change the configured \
                 address if that is right",
                without_secrets(&location)
            ),
            _ => said(&body),
        };
        Err(StreamableHttpError::Client(HttpFailure::Status { status: status.as_u16(), said }))
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        mut headers: Headers,
    ) -> Outcome<StreamableHttpPostResponse> {
        let body = serde_json::to_vec(&message).map(Bytes::from)?;
        accept(&mut headers);
        insert(&mut headers, HEADER_SESSION_ID, session.as_deref());
        if may_lead_to_questions(&message) {
            self.standing.settled().await;
        }
        let patience = discovery(&message).map(|_| self.patience);
        let (method, body) = (Method::POST, Some(&body));
        let sent = self.send(Outgoing { method, headers: &headers, body, patience }).await?;
        let Some(response) = sent else {
            return match asked_id(&message) {
                Some(id) => Ok(fails(unknown_here(), id)),
                None => Ok(StreamableHttpPostResponse::Accepted),
            };
        };
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !status.is_success() {
            return self.refused(response, &message, session.as_deref()).await;
        }
        let new_session = response.headers().get(HEADER_SESSION_ID);
        let new_session = new_session.and_then(|value| value.to_str().ok()).map(str::to_owned);
        if is_greeting(&message) {
            if new_session.is_some() {
                self.standing.expect();
            }
            if self.greeted.swap(true, Ordering::AcqRel) {
                // It has forgotten us, so it was started anew, and may offer something else.
                self.caller.dirty.mark_all();
            }
        }
        let Some(id) = asked_id(&message) else {
            // Nobody waits for an answer to a notice.
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        if let Some(session) = session {
            *self.proven.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
        }
        match text_of(&response, &CONTENT_TYPE).unwrap_or_default() {
            kind if kind.starts_with(EVENT_STREAM_MIME_TYPE) => {
                let events = events::answer(response.bytes_stream(), self.limit, id);
                let events = Shown::hide_in_events(&self.shown, events);
                Ok(StreamableHttpPostResponse::Sse(events, new_session))
            }
            kind if kind.starts_with(JSON_MIME_TYPE) => {
                let Some(body) = self.read(response, self.limit).await? else {
                    return Ok(fails(too_long(self.limit), id));
                };
                let read = match std::str::from_utf8(&body) {
                    Ok(text) => read_message(text),
                    Err(_) => serde_json::from_slice(&body),
                };
                let read = read.map_err(|error| {
                    let why = format!("{error}{}", said(&body));
                    StreamableHttpError::Client(HttpFailure::Unreadable(why))
                })?;
                Ok(StreamableHttpPostResponse::Json(read, new_session))
            }
            kind => {
                let why = format!("it is of type `{kind}`");
                Err(StreamableHttpError::Client(HttpFailure::Unreadable(why)))
            }
        }
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
    ) -> Outcome<StreamableHttpPostResponse> {
        self.post(message, session, headers).await
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        mut headers: Headers,
    ) -> Outcome<()> {
        insert(&mut headers, HEADER_SESSION_ID, Some(&*session));
        // The server forgets the session sooner or later anyway.
        let (method, headers) = (Method::DELETE, &headers);
        self.send(Outgoing { method, headers, body: None, patience: None }).await.map(drop)
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        mut headers: Headers,
    ) -> Outcome<BoxedSseResponse> {
        accept(&mut headers);
        insert(&mut headers, HEADER_SESSION_ID, session.as_deref());
        insert(&mut headers, HEADER_LAST_EVENT_ID, last_event.as_deref());
        let (method, headers) = (Method::GET, &headers);
        let sent = self.send(Outgoing { method, headers, body: None, patience: None }).await;
        if last_event.is_some() && self.is_given_up(&sent) {
            // It is asked for no more; whoever waits for the rest of an answer learns that nothing comes.
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if last_event.is_none() {
            // Whatever came of it: there is nothing more to wait for.
            self.standing.settle();
        }
        let response = sent?.ok_or(StreamableHttpError::ServerDoesNotSupportSse)?;
        let kind = text_of(&response, &CONTENT_TYPE).unwrap_or_default();
        let status = response.status();
        if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED {
            // That may pass; it is asked again.
            let failure = HttpFailure::Status { status: status.as_u16(), said: String::new() };
            return Err(StreamableHttpError::Client(failure));
        }
        if !status.is_success() || !kind.starts_with(EVENT_STREAM_MIME_TYPE) {
            // Whatever it says instead: there is no stream to be had.
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        let events = events::notices(response.bytes_stream(), self.limit);
        Ok(Shown::hide_in_events(&self.shown, events))
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpClient").field("remote", &self.remote).finish_non_exhaustive()
    }
}

/// Follows a redirect that keeps the request as it is and stays with the same server.
fn same_origin() -> Policy {
    Policy::custom(|attempt| {
        let keeps = matches!(
            attempt.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        let stays = attempt
            .previous()
            .first()
            .is_some_and(|first| first.origin() == attempt.url().origin());
        if keeps && stays && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// Tells whether a refusal is one of the session: servers say this in many words.
fn is_about_the_session(complaint: &[u8]) -> bool {
    let said = String::from_utf8_lossy(complaint).to_ascii_lowercase();
    said.contains("session") || said.contains("server not initialized")
}

fn accept(headers: &mut Headers) {
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
}

fn insert(headers: &mut Headers, name: &'static str, value: Option<&str>) {
    if let (Ok(name), Some(Ok(value))) =
        (HeaderName::from_bytes(name.as_bytes()), value.map(HeaderValue::from_str))
    {
        headers.insert(name, value);
    }
}

fn text_of(response: &Response, name: &HeaderName) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn asked_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

fn discovery(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => {
            matches!(request.request, ClientRequest::DiscoverRequest(_)).then(|| request.id.clone())
        }
        _ => None,
    }
}

fn is_greeting(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, ClientJsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::InitializeRequest(_)))
}

/// Tells whether a server may want to ask something before it answers.
fn may_lead_to_questions(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else {
        return false;
    };
    match &request.request {
        ClientRequest::CallToolRequest(_)
        | ClientRequest::GetPromptRequest(_)
        | ClientRequest::ReadResourceRequest(_) => true,
        // Of calls that are tasks.
        ClientRequest::CustomRequest(custom) => {
            matches!(&*custom.method, "tools/call" | "tasks/result")
        }
        _ => false,
    }
}

/// Answers a request in the server's place.
fn fails(error: ErrorData, id: RequestId) -> StreamableHttpPostResponse {
    StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, Some(id)), None)
}

fn unknown_here() -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "not known here", None)
}

fn too_long(limit: usize) -> ErrorData {
    ErrorData::new(
        CUT_OFF,
        format!("the answer is longer than {limit} bytes and was cut off"),
        None,
    )
}

/// Returns what a body says, as the end of a sentence.
fn said(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..SHOWN_BYTES).unwrap_or(body)).into_owned();
    match text.trim() {
        "" => String::new(),
        // A page for a browser helps nobody here.
        text if text.starts_with('<') => " and a page for a browser".to_owned(),
        text => format!(": {text}"),
    }
}

/// Returns an address without what may be a password in it.
pub(super) fn without_secrets(address: &str) -> String {
    match url::Url::parse(address) {
        Ok(url) => format!("{}{}", url.origin().ascii_serialization(), url.path()),
        Err(_) => "an address that is none".to_owned(),
    }
}

/// Returns the last cause, which is the one that says something.
fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{DiscoverRequest, DiscoverRequestParams};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_server_that_never_answers_the_first_question_is_taken_for_an_old_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let remote = Remote { name: "s".into(), url };
        let caller = Caller::default();
        let mut client =
            HttpClient::new(remote, Reach::Anywhere, &|builder| builder, caller).unwrap();
        client.patience = Duration::from_millis(20);
        let request = DiscoverRequest::new(DiscoverRequestParams {});
        let request = ClientRequest::DiscoverRequest(request);
        let message = ClientJsonRpcMessage::request(request, RequestId::Number(1));
        let answer = client.post(message, None, Headers::new()).await.unwrap();
        let StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), _) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(error.error.code, ErrorCode::METHOD_NOT_FOUND);
    }

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        let shown = without_secrets("https://me:hush@a.example/mcp?key=hush");
        assert_eq!(shown, "https://a.example/mcp");
    }
}
