//! Opens connections: starts the program or finds the address, and agrees on the protocol.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use convoke_tool::{Process, Program, Spawner};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::ClientHandler;
use rmcp::model::ServerPeerInfo;
use rmcp::service::{RoleClient, serve_directly_with_ct};
use rmcp::transport::IntoTransport;
use rmcp::transport::common::client_side_sse::SseRetryPolicy;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Connection;
use super::keep::{Keeping, OtherSide, exit, keep, stop_process};
use crate::auth::Reach;
use crate::client::authorization::Remote;
use crate::client::config::{ServerConfig, Transport};
use crate::client::handler::Handler;
use crate::client::http::{Caller, HttpClient, HttpFailure};
use crate::client::last_words::{Heard, LastWords};
use crate::client::lines::{Lines, Notes};
use crate::client::manifest::Facts;
use crate::client::negotiate::{Disagreement, Opening, negotiate};
use crate::client::offer::cut;
use crate::client::stderr::{LogFile, Stderr};
use crate::client::surroundings::Surroundings;
use crate::client::task::{Background, Farewells};

/// How long what a program said last may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// How much of what a server said when it refused is told.
const MAX_WHY_BYTES: usize = 2 * 1024;

/// Why a connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::client) struct OpenFailure {
    /// For a person.
    pub(in crate::client) why: String,
    /// The server went away when it was asked something: it may be asked something else.
    pub(in crate::client) hung_up: bool,
    /// A person has to do something first.
    pub(in crate::client) unauthorized: bool,
    /// There was no time left.
    late: bool,
}

impl OpenFailure {
    fn new(why: impl Into<String>) -> Self {
        // A server may say anything, at any length; this is kept, and told again and again.
        let why = cut(&why.into(), MAX_WHY_BYTES);
        Self { why, hung_up: false, unauthorized: false, late: false }
    }

    fn late(why: impl Into<String>) -> Self {
        Self { late: true, ..Self::new(why) }
    }

    /// Tells whether the answer might be another if something else were asked.
    pub(in crate::client) const fn may_be_asked_otherwise(&self) -> bool {
        !self.unauthorized && !self.late
    }
}

/// Opens a connection, before the deadline. What a program says can be heard from its start on.
pub(in crate::client) async fn open(
    config: &ServerConfig,
    surroundings: &Surroundings,
    heard: &Heard,
    handler: Handler,
    opening: Opening,
    deadline: Instant,
) -> Result<Connection, OpenFailure> {
    if let Some(why) = surroundings.refused.get(&config.name) {
        return Err(OpenFailure::new(why));
    }
    match &config.transport {
        Transport::Program { command, args, env, cwd } => {
            let mut line = vec![command.clone()];
            line.extend(args.iter().cloned());
            let directory = cwd.clone().unwrap_or_default();
            let directory = surroundings.working_directory.join(directory);
            let mut environment = surroundings.environment.clone();
            environment.extend(env.clone());
            let program = Program::new(line, directory).environment(environment);
            let log = LogFile::of(&config.name, Arc::clone(&surroundings.logs));
            let own = surroundings.spawners.get(&config.name);
            let spawner = Arc::clone(own.unwrap_or(&surroundings.spawner));
            let process = spawn_beside(spawner, program).await?;
            open_program(process, log, heard, handler, opening, deadline).await
        }
        Transport::Http { url, headers } => {
            let remote = Remote { name: config.name.clone(), url: url.clone() };
            open_http(remote, headers, surroundings, handler, opening, deadline).await
        }
    }
}

/// Starts a program on a thread of its own. The system returns once the program has begun, which on a busy
/// machine takes a while: twenty servers would hold up the first request of a run by all of that.
async fn spawn_beside(
    spawner: Arc<dyn Spawner>,
    program: Program,
) -> Result<Box<dyn Process>, OpenFailure> {
    let runtime = Handle::current();
    let spawning = tokio::task::spawn_blocking(move || runtime.block_on(spawner.spawn(program)));
    match spawning.await {
        Ok(spawned) => spawned.map_err(|error| OpenFailure::new(error.message)),
        Err(_) => Err(OpenFailure::new("the runtime is shutting down")),
    }
}

async fn open_program(
    mut process: Box<dyn Process>,
    log: LogFile,
    heard: &Heard,
    handler: Handler,
    opening: Opening,
    deadline: Instant,
) -> Result<Connection, OpenFailure> {
    let Some(streams) = process.take_streams() else {
        return Err(OpenFailure::new("the program was started without its streams"));
    };
    let mut stderr = Stderr::follow(streams.stderr, log);
    let notes = Arc::new(Notes::default());
    let words = LastWords::new(stderr.complaints().clone(), Arc::clone(&notes));
    heard.listen(words.clone());
    let mut lines = Lines::new(streams.stdout, streams.stdin, Arc::clone(&notes));
    let own = handler.get_info();
    let agreed = tokio::time::timeout_at(deadline, negotiate(&mut lines, opening, &own)).await;
    let agreed = match agreed {
        Ok(Ok(agreed)) => agreed,
        Ok(Err(disagreement)) => {
            let hung_up = matches!(disagreement, Disagreement::Closed | Disagreement::Unsent(_));
            let how = if hung_up { exit(process.as_mut()).await } else { None };
            stop_process(process.as_mut()).await;
            stderr.settle(LAST_WORDS).await;
            // What a program says last before it ends is why, if nothing else is.
            let complaints = stderr.complaints();
            let last = how.as_ref().and_then(|_| complaints.last_line());
            let what = notes.broken().map(str::to_owned).or(how);
            let what = what.unwrap_or_else(|| disagreement.to_string());
            let why = words.after(&what, complaints.reason().or(last));
            return Err(OpenFailure { hung_up, ..OpenFailure::new(why) });
        }
        Err(_) => {
            // What it says of being ended is not why.
            let why = words.too_late("it did not answer in time");
            process.kill();
            stderr.settle(LAST_WORDS).await;
            return Err(OpenFailure::late(why));
        }
    };
    Ok(connected(handler, lines, agreed, OtherSide::Program(process, stderr, notes)))
}

/// Speaks to a server from now on, as it was agreed.
fn connected<T>(
    handler: Handler,
    transport: T,
    agreed: ServerPeerInfo,
    other: OtherSide,
) -> Connection
where
    T: rmcp::transport::Transport<RoleClient> + Send + 'static,
{
    let stop = CancellationToken::new();
    let (end, ended) = watch::channel(None);
    let service = CancellationToken::new();
    let facts = Facts::of(&agreed);
    let running = serve_directly_with_ct(handler.clone(), transport, Some(agreed), service.clone());
    let peer = running.peer().clone();
    let given_up = Arc::<OnceLock<String>>::default();
    let (kept_stop, why) = (stop.clone(), Arc::clone(&given_up));
    let over_http = matches!(other, OtherSide::Remote(_));
    let notes = match &other {
        OtherSide::Program(_, _, notes) => Some(Arc::clone(notes)),
        OtherSide::Remote(_) => None,
    };
    let farewells = Farewells::default();
    let keeper = Background::spawn(keep(Keeping {
        running,
        service,
        stop: kept_stop,
        farewells: farewells.clone(),
        end,
        given_up: why,
        other,
    }));
    Connection {
        peer,
        handler,
        facts,
        ended,
        stop,
        given_up,
        over_http,
        notes,
        farewells,
        _keeper: keeper,
    }
}

async fn open_http(
    remote: Remote,
    headers: &BTreeMap<String, String>,
    surroundings: &Surroundings,
    handler: Handler,
    opening: Opening,
    deadline: Instant,
) -> Result<Connection, OpenFailure> {
    let parsed = url::Url::parse(&remote.url).ok();
    let Some(url) = parsed.filter(|url| matches!(url.scheme(), "http" | "https")) else {
        return Err(OpenFailure::new("its address is not an http or https URL"));
    };
    let reach = surroundings.reach.get(&remote.name).copied().unwrap_or(Reach::Anywhere);
    reach.admit(&url).map_err(OpenFailure::new)?;
    let custom_headers = readable(headers)?;
    let mut transport_config = StreamableHttpClientTransportConfig::with_uri(remote.url.as_str());
    transport_config.custom_headers = custom_headers;
    transport_config.retry_config = Arc::new(Patience);
    let setup = Arc::clone(&surroundings.http);
    let authorization = surroundings.authorization.clone();
    let interlude = Arc::clone(&handler.interlude);
    // What is not agreed on is given up, with every exchange that still waits for the server.
    let exchanges = CancellationToken::new().drop_guard();
    let caller = Caller {
        authorization,
        interlude,
        dirty: Arc::clone(&handler.dirty),
        given_up: exchanges.token().clone(),
    };
    // Certificates are read from files.
    let client =
        tokio::task::spawn_blocking(move || HttpClient::new(remote, reach, setup.as_ref(), caller));
    let client = client.await.unwrap_or_else(|_| Err("the runtime is shutting down".to_owned()));
    let client = client.map_err(OpenFailure::new)?;
    let transport = StreamableHttpClientTransport::with_client(client, transport_config);
    let mut transport = IntoTransport::<RoleClient, _, _>::into_transport(transport);
    let own = handler.get_info();
    let negotiating = negotiate(&mut transport, opening, &own);
    let agreed = match handler.interlude.within(deadline, negotiating).await {
        Some(Ok(agreed)) => agreed,
        // Closing would wait for what the library waits for itself; dropping ends both.
        Some(Err(disagreement)) => return Err(explained(&disagreement)),
        None => return Err(OpenFailure::late("it did not answer in time")),
    };
    Ok(connected(handler, transport, agreed, OtherSide::Remote(exchanges)))
}

/// How long is waited before a stream that broke off is asked for again.
#[derive(Debug)]
struct Patience;

impl SseRetryPolicy for Patience {
    fn retry(&self, times: usize) -> Option<Duration> {
        const FIRST: Duration = Duration::from_millis(250);
        const LONGEST: Duration = Duration::from_secs(30);
        let doubled = u32::try_from(times.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
        Some((FIRST * 2_u32.pow(doubled)).min(LONGEST))
    }
}

fn readable(
    headers: &BTreeMap<String, String>,
) -> Result<HashMap<HeaderName, HeaderValue>, OpenFailure> {
    let read = headers.iter().map(|(name, text)| {
        let wrong = || OpenFailure::new(format!("its header `{name}` cannot be sent as it is"));
        let read = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(text).map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok((read, value))
    });
    read.collect()
}

fn explained(disagreement: &Disagreement) -> OpenFailure {
    let Disagreement::Unsent(error) = disagreement else {
        return OpenFailure::new(disagreement.to_string());
    };
    match error.downcast_ref::<StreamableHttpError<HttpFailure>>() {
        Some(StreamableHttpError::Client(failure)) => OpenFailure {
            unauthorized: matches!(failure, HttpFailure::Unauthorized(_)),
            ..OpenFailure::new(failure.to_string())
        },
        Some(other) => OpenFailure::new(other.to_string()),
        None => OpenFailure::new(error.to_string()),
    }
}
