//! Many clients, over HTTP.
//!
//! Who may come in is decided before anything of a request is read: by where it was sent to, by the
//! page it comes from, and by a token. A server that other machines can reach does not start without
//! one. Sessions of older clients are counted and end when nothing happens in them; newer clients have
//! none. The number of connections is bounded, and so is what one of them may send.

mod gate;
mod page;
mod reply;
mod sessions;

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::gate::{Entry, Gate};
use self::reply::{Body, refuse};
pub(super) use self::sessions::SessionEnd;
use self::sessions::Sessions;
use super::handler::{Handler, Shared};
use super::service::{ServeError, Service};

/// How long a client may take to send the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(15);
/// How long connections have to end when the server stops.
const CONNECTIONS_END_WITHIN: Duration = Duration::from_secs(5);
/// How long the server waits before it accepts again after it could not.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How a server is reached over HTTP, and by whom.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpSettings {
    /// The path of the endpoint: `/mcp` by default.
    pub path: String,
    /// What clients have to send as `Authorization: Bearer …`.
    pub token: Option<String>,
    /// The names under which the server is reached, with or without a port. The address it listens on is
    /// always among them, and on a loopback address its usual names; elsewhere, none means that the name is
    /// not looked at.
    pub hosts: Vec<String>,
    /// The origins of web pages that may send requests: `https://example.com`. On a loopback address,
    /// pages of this machine may as well.
    pub origins: Vec<String>,
    /// How many connections there are at once.
    pub max_connections: usize,
    /// How many sessions of older clients there are at once.
    pub max_sessions: usize,
    /// When a session in which nothing happens ends.
    pub session_idle: Duration,
    /// Stops the server when it is cancelled.
    pub stop: CancellationToken,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            path: "/mcp".into(),
            token: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            max_connections: 512,
            max_sessions: 128,
            session_idle: Duration::from_mins(15),
            stop: CancellationToken::new(),
        }
    }
}

impl HttpSettings {
    /// Says what is wrong with them for a server that listens on this address, before it does anything.
    pub fn check(&self, address: SocketAddr) -> Result<(), ServeError> {
        Gate::new(self, address, 0).map(drop)
    }
}

impl fmt::Debug for HttpSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpSettings")
            .field("path", &self.path)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

type Endpoint = StreamableHttpService<Handler, LocalSessionManager>;

/// What the connections of one server share.
struct Server {
    gate: Gate,
    endpoint: Endpoint,
    sessions: Arc<Sessions>,
}

/// Serves clients that connect to `listener` until the settings' token is cancelled. Whatever they left
/// under way has stopped when this returns.
pub async fn serve_http(
    service: Service,
    listener: TcpListener,
    settings: HttpSettings,
) -> Result<(), ServeError> {
    let gate = Gate::new(&settings, listener.local_addr()?, service.limits.max_message_bytes)?;
    let stop = settings.stop.child_token();
    // However this ends, nothing of it goes on.
    let _stop_the_rest = stop.clone().drop_guard();
    let shared = Shared::new(service, stop.clone());
    let sessions = Sessions::new(settings.max_sessions, settings.session_idle);
    let server = Arc::new(Server {
        gate,
        endpoint: endpoint(&shared, &sessions, &stop),
        sessions: Arc::clone(&sessions),
    });
    let connections = TaskTracker::new();
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = accept(&listener, &server, &connections, settings.max_connections, &stop) => {}
        () = sessions.end_idle_ones() => {}
    }
    drop(listener);
    stop.cancel();
    connections.close();
    // A connection that does not end is cut off; its calls are stopped below in any case.
    drop(tokio::time::timeout(CONNECTIONS_END_WITHIN, connections.wait()).await);
    sessions.end_all().await;
    shared.finish().await;
    Ok(())
}

fn endpoint(shared: &Arc<Shared>, sessions: &Sessions, stop: &CancellationToken) -> Endpoint {
    // Host, origin and size of a request are checked at the gate, by rules that are ours.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(usize::MAX)
        // An answer that nothing comes before needs no stream, which costs clients a third more time.
        .with_json_response(true)
        .with_cancellation_token(stop.child_token());
    let shared = Arc::clone(shared);
    let handler = move || Ok(Handler::new(Arc::clone(&shared)));
    StreamableHttpService::new(handler, sessions.manager(), config)
}

async fn accept(
    listener: &TcpListener,
    server: &Arc<Server>,
    connections: &TaskTracker,
    at_once: usize,
    stop: &CancellationToken,
) {
    let room = Arc::new(Semaphore::new(at_once.max(1)));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file handles, most likely: others have to end first.
            tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
            continue;
        };
        let (server, stop) = (Arc::clone(server), stop.clone());
        connections.spawn(async move {
            serve_connection(stream, server, stop).await;
            drop(place);
        });
    }
}

async fn serve_connection(stream: TcpStream, server: Arc<Server>, stop: CancellationToken) {
    // A word about a call is small and should not wait for the next.
    drop(stream.set_nodelay(true));
    let answer = service_fn(move |request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(server.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(connection);
    // A connection that breaks has nobody who could be told.
    tokio::select! {
        biased;
        ended = &mut connection => drop(ended),
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            drop(tokio::time::timeout(CONNECTIONS_END_WITHIN, connection).await);
        }
    }
}

impl Server {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let page = self.gate.page(request.headers());
        let entry = self.gate.check(request.method(), request.uri(), request.headers());
        let response = match entry {
            Ok(Entry::Request) => self.serve(request).await,
            Ok(Entry::Preflight) => page::may_send(),
            Err(refused) => refused.into_response(),
        };
        match page {
            Some(page) => page.sees(response),
            None => response,
        }
    }

    async fn serve(&self, request: Request<Incoming>) -> Response<Body> {
        let active = self.sessions.enter(request.headers()).await;
        let (mut head, body) = request.into_parts();
        if let Some(active) = &active {
            head.extensions.insert(active.end());
        }
        let body = if head.method == Method::POST {
            match self.gate.read(body).await {
                Ok(body) => body,
                Err(refused) => return refused.into_response(),
            }
        } else {
            Bytes::new()
        };
        // One begins at a time, so that there is still room when it has.
        let mut beginning = None;
        if gate::begins_session(&body) {
            beginning = self.sessions.begin().await;
            if beginning.is_none() {
                let reason = "the server has as many sessions as it may; try again later";
                return refuse(StatusCode::SERVICE_UNAVAILABLE, -32000, reason).into_response();
            }
        }
        let ends_session = head.method == Method::DELETE;
        let request = Request::from_parts(head, Full::new(body));
        let mut response = self.endpoint.handle(request).await;
        drop(beginning);
        if ends_session && response.status() == StatusCode::ACCEPTED {
            // The session is over, not about to be; some clients take anything else for a failure.
            *response.status_mut() = StatusCode::NO_CONTENT;
            self.sessions.forget_ended().await;
        }
        response.map(|body| reply::counted(body, active))
    }
}
