//! One server: whether it runs, what it offers, and the way to it.
//!
//! It is started when it is first needed, by whoever needs it first; the others wait for the same start.
//! When it ends, whatever way, what it offers stays known, and the next use starts it again, unless it has
//! failed several times in a row: then it is left alone for a while, and calls are told for how long.

mod refresh;
mod start;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use convoke_core::ToolError;
use convoke_tool::ToolContext;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::Instant;

use super::backoff::{Backoff, STEADY};
use super::config::ServerConfig;
use super::connection::{Connection, Terms};
use super::failure::Failure;
use super::handler::List;
use super::last_words::Heard;
use super::manifest::{Cache, Manifest};
use super::offer::{Calling, ToolEntry};
use super::rounds::{Answers, ask};
use super::setback::{Setback, kept_reason};
use super::state::{Change, News, ServerState};
use super::surroundings::Surroundings;
use super::task::Background;
use super::tool::McpTool;

/// Longer than anybody waits, and short enough to be added to any moment.
const FOREVER: Duration = Duration::from_hours(24 * 365);
/// A server that failed is waited for so long before it is started again, and not longer.
const SHORT_REST: Duration = Duration::from_secs(5);
/// How long a server may take to end, once it was told to. Longer than all its graces together.
const STOP_PATIENCE: Duration = Duration::from_secs(8);

/// One server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) config: ServerConfig,
    surroundings: Arc<Surroundings>,
    news: Arc<News>,
    cache: Cache,
    slot: Mutex<Slot>,
    offer: Mutex<Arc<Offer>>,
    /// How the last try to start it failed, here or in another process.
    setback: Mutex<Option<Setback>>,
    /// What its program has said.
    heard: Heard,
    /// Held while lists are read.
    refreshing: tokio::sync::Mutex<()>,
}

/// What a server is doing.
#[derive(Debug, Default)]
struct Slot {
    phase: Phase,
    backoff: Backoff,
    /// Why it failed, if it did.
    why: Option<String>,
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Idle,
    Starting {
        outcome: watch::Receiver<Option<Outcome>>,
        _work: Background,
    },
    Ready {
        connection: Arc<Connection>,
        since: Instant,
        _watch: Background,
    },
    Stopped,
}

type Outcome = Result<Arc<Connection>, Failure>;

/// What a server offers, ready to be used.
#[derive(Debug, Default)]
pub(super) struct Offer {
    pub(super) manifest: Manifest,
    pub(super) tools: Vec<Arc<McpTool>>,
    /// When the list of tools was read; never, if it comes from an earlier run.
    listed: Option<Instant>,
    /// Whether the other lists were read as well since then.
    whole: bool,
}

impl Server {
    pub(super) fn new(
        mut config: ServerConfig,
        surroundings: Arc<Surroundings>,
        news: Arc<News>,
    ) -> Arc<Self> {
        for time in [&mut config.timeout, &mut config.longest_call, &mut config.start_timeout] {
            *time = FOREVER.min(*time);
        }
        let cache = Cache::of(&config, &surroundings);
        let now = surroundings.clock.now();
        let known = config.enabled.then(|| cache.read(now)).flatten();
        let setback = Mutex::new(cache.setbacks().read(now));
        let (slot, offer, heard, refreshing) = Default::default();
        let server =
            Self { config, surroundings, news, cache, slot, offer, setback, heard, refreshing };
        let server = Arc::new(server);
        if let Some(manifest) = known {
            server.offers(manifest, None, false);
        }
        server
    }

    pub(super) fn name(&self) -> &str {
        &self.config.name
    }

    pub(super) fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells whether it is known what it offers.
    pub(super) fn is_known(&self) -> bool {
        !self.config.enabled || self.offer().manifest.is_known()
    }

    /// Has it say what it offers, beside whatever else happens, unless that is known and still holds.
    pub(super) fn renew(self: &Arc<Self>) {
        let known = self.offer();
        let connection = match &self.slot().phase {
            Phase::Ready { connection, .. } => Some(Arc::clone(connection)),
            // Who stopped it meant it.
            Phase::Stopped if known.manifest.is_known() => return,
            _ => None,
        };
        match connection {
            Some(connection) => self.freshen(&connection),
            None if known.manifest.holds_at(self.surroundings.clock.now()) => {}
            None => self.begin(),
        }
    }

    /// Takes note of what it offers now. A tool that it had before, and that is the same, stays what it is.
    fn offers(self: &Arc<Self>, manifest: Manifest, listed: Option<Instant>, whole: bool) {
        let before = self.offer();
        let known: HashMap<&str, &Arc<McpTool>> =
            before.tools.iter().map(|tool| (tool.name(), tool)).collect();
        let entries: HashMap<&str, &ToolEntry> =
            before.manifest.tools.iter().map(|entry| (&*entry.name, entry)).collect();
        let wanted = manifest.tools.iter().filter(|entry| self.config.takes(&entry.name));
        let usable = wanted.filter(|entry| entry.unusable.is_none());
        let make = |entry: &ToolEntry| match known.get(&*entry.name) {
            Some(tool) if entries.get(&*entry.name) == Some(&entry) => Arc::clone(tool),
            _ => Arc::new(McpTool::new(Arc::downgrade(self), &self.config, entry)),
        };
        let tools = usable.map(make).collect();
        let offer = Arc::new(Offer { manifest, tools, listed, whole });
        *self.offer.lock().unwrap_or_else(PoisonError::into_inner) = offer;
        self.news.tell(Change::Offer { server: self.name().to_owned() });
    }

    /// Returns what it is doing.
    pub(super) fn state(&self) -> ServerState {
        self.slot().state()
    }

    /// Says what happened to a start that took too long, and what the program has said so far, if it is one.
    pub(super) fn too_late(&self, what: &str) -> String {
        self.heard.too_late(what)
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_state(&self, state: ServerState) {
        self.news.tell(Change::State { server: self.name().to_owned(), state });
    }

    /// Begins to start it, unless it runs, is being started, or must be left alone.
    pub(super) fn begin(self: &Arc<Self>) {
        let mut slot = self.slot();
        if matches!(slot.phase, Phase::Stopped) {
            slot.phase = Phase::Idle;
        }
        let rests = slot.backoff.wait() > Duration::ZERO;
        let idle = matches!(slot.phase, Phase::Idle);
        if self.config.enabled && idle && !rests {
            drop(self.start_in(&mut slot));
        }
    }

    fn start_in(self: &Arc<Self>, slot: &mut Slot) -> watch::Receiver<Option<Outcome>> {
        let (tell, outcome) = watch::channel(None);
        let server = Arc::clone(self);
        let work = Background::spawn(async move {
            let started = server.start().await;
            server.remember(started.as_ref().err()).await;
            server.started(started, &tell);
        });
        slot.phase = Phase::Starting { outcome: outcome.clone(), _work: work };
        self.tell_state(ServerState::Starting);
        outcome
    }

    /// Returns a connection, and starts the server for that if need be.
    pub(super) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, Failure> {
        let rest = {
            let mut slot = self.slot();
            self.notice_end(&mut slot);
            slot.rest()
        };
        // Not even a sleep of no time at all: it lasts a millisecond.
        if !rest.is_zero() && rest <= SHORT_REST {
            // Whoever needs it now would rather wait a moment than be told to come back in a moment.
            tokio::time::sleep(rest).await;
        }
        let mut outcome = {
            let mut slot = self.slot();
            if !self.config.enabled {
                return Err(Failure::Off("is switched off in the configuration"));
            }
            self.notice_end(&mut slot);
            match &slot.phase {
                Phase::Ready { connection, .. } => return Ok(Arc::clone(connection)),
                Phase::Starting { outcome, .. } => outcome.clone(),
                Phase::Stopped => return Err(Failure::Off("was stopped")),
                Phase::Idle => {
                    let wait = slot.backoff.wait();
                    if wait > Duration::ZERO {
                        let why = slot.why.clone().unwrap_or_default();
                        return Err(Failure::Resting { why, wait });
                    }
                    self.start_in(&mut slot)
                }
            }
        };
        let started = outcome.wait_for(Option::is_some).await;
        match started.ok().and_then(|outcome| outcome.clone()) {
            Some(outcome) => outcome,
            None => Err(Failure::Off("was stopped while it was being started")),
        }
    }

    /// A start has come to its end.
    fn started(self: &Arc<Self>, outcome: Outcome, tell: &watch::Sender<Option<Outcome>>) {
        let mut slot = self.slot();
        if !matches!(slot.phase, Phase::Starting { .. }) {
            return;
        }
        let before;
        match &outcome {
            Ok(connection) => {
                let watch = Background::spawn(Arc::clone(self).watch(Arc::clone(connection)));
                let (connection, since) = (Arc::clone(connection), Instant::now());
                slot.why = None;
                before = std::mem::replace(
                    &mut slot.phase,
                    Phase::Ready { connection, since, _watch: watch },
                );
            }
            Err(failure) => {
                // Who has to sign in first should not have to wait afterwards.
                if matches!(failure, Failure::Unauthorized(_)) {
                    slot.backoff.worked();
                } else {
                    slot.backoff.failed();
                }
                slot.why = Some(failure.reason(self.name()));
                before = std::mem::take(&mut slot.phase);
            }
        }
        let state = slot.state();
        drop(slot);
        tell.send_replace(Some(outcome));
        self.tell_state(state);
        // This is the work itself: it goes last.
        drop(before);
    }

    /// Returns how the last try to start it failed, if it did.
    pub(super) fn setback(&self) -> Option<Setback> {
        self.setback.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns what there is to know of it that stops nothing.
    pub(super) fn warnings(&self) -> Vec<String> {
        let own = self.news.warnings().into_iter().filter(|warning| warning.server == self.name());
        own.map(|warning| warning.message).collect()
    }

    /// Keeps how a start ended, for whoever asks later. It is no harm if that is not possible.
    pub(super) async fn remember(&self, failure: Option<&Failure>) {
        let setback = failure.map(|failure| Setback {
            at: self.surroundings.clock.now(),
            why: kept_reason(&failure.reason(self.name()), &self.config),
            wants_login: matches!(failure, Failure::Unauthorized(_)),
        });
        let before = std::mem::replace(
            &mut *self.setback.lock().unwrap_or_else(PoisonError::into_inner),
            setback.clone(),
        );
        if before.is_some() || setback.is_some() {
            let file = self.cache.setbacks();
            drop(tokio::task::spawn_blocking(move || file.write(setback.as_ref())).await);
        }
    }

    /// Finds out whether a connection that was ready has ended.
    fn notice_end(&self, slot: &mut Slot) {
        let Phase::Ready { connection, since, .. } = &slot.phase else {
            return;
        };
        let Some(how) = connection.end() else {
            return;
        };
        if since.elapsed() >= STEADY {
            slot.backoff.worked();
        }
        slot.backoff.failed();
        slot.why = Some(how.to_string());
        let ended = std::mem::take(&mut slot.phase);
        let state = slot.state();
        self.tell_state(state);
        // What watched over it may be who noticed: it goes last.
        drop(ended);
    }

    /// Says what happened to a request, and, where it is gone, when it can be asked again.
    pub(super) fn tell(&self, failure: Failure) -> ToolError {
        let mut rest = Duration::ZERO;
        if matches!(failure, Failure::Ended(_)) {
            let mut slot = self.slot();
            self.notice_end(&mut slot);
            // A short one is waited for.
            rest = Some(slot.rest()).filter(|rest| *rest > SHORT_REST).unwrap_or_default();
        }
        failure.about_one_that_rests(self.name(), rest)
    }

    /// Ends it. It stays so until it is begun again.
    pub(super) async fn stop(&self) {
        let ended = self.leave();
        if let Some(connection) = ended {
            // It is killed at the end of its graces; there is nothing to wait for after that.
            drop(tokio::time::timeout(STOP_PATIENCE, connection.ended()).await);
        }
    }

    /// Begins to end it, and returns what there was.
    pub(super) fn leave(&self) -> Option<Arc<Connection>> {
        let mut slot = self.slot();
        let before = std::mem::replace(&mut slot.phase, Phase::Stopped);
        slot.backoff.worked();
        slot.why = None;
        drop(slot);
        if matches!(before, Phase::Stopped) {
            return None;
        }
        self.tell_state(ServerState::Stopped);
        match &before {
            Phase::Ready { connection, .. } => {
                connection.stop();
                Some(Arc::clone(connection))
            }
            _ => None,
        }
    }

    /// How long a request may take, and for which call it is made, if for any.
    fn own_terms<'a>(&self, context: Option<&'a ToolContext>) -> Terms<'a> {
        Terms { idle: self.config.timeout, total: self.config.longest_call, context }
    }

    /// Sees to it that all lists of a running server are read.
    pub(super) async fn listed(self: &Arc<Self>) -> Result<(), Failure> {
        let connection = self.connection().await?;
        self.freshen(&connection);
        if self.offer().whole {
            return Ok(());
        }
        self.refresh(&connection, &[List::Resources, List::Prompts]).await
    }

    /// Makes a request of a server that may need to be started, and may have questions.
    pub(super) async fn ask(
        self: &Arc<Self>,
        context: Option<&ToolContext>,
        request: impl Fn(Answers) -> ClientRequest,
    ) -> Result<Value, Failure> {
        let connection = self.connection_for(context).await?;
        let asked = ask(&connection, self.own_terms(context), request).await;
        self.note_output(&connection);
        asked
    }

    /// Returns a connection for whoever may stop waiting for it.
    async fn connection_for(
        self: &Arc<Self>,
        context: Option<&ToolContext>,
    ) -> Result<Arc<Connection>, Failure> {
        let connection = match context {
            None => self.connection().await?,
            Some(context) => tokio::select! {
                biased;
                () = context.cancelled() => return Err(Failure::Cancelled),
                connection = self.connection() => connection?,
            },
        };
        self.freshen(&connection);
        Ok(connection)
    }

    /// Calls a tool.
    pub(super) async fn call_tool(
        self: &Arc<Self>,
        tool: &str,
        calling: Calling,
        arguments: Map<String, Value>,
        context: &ToolContext,
    ) -> Result<Value, Failure> {
        if calling == Calling::AsTask {
            let connection = self.connection_for(Some(context)).await?;
            let facts = connection.facts();
            // Later revisions leave it to the server, which may do so only with those that say that they know tasks. Of
            // a server that does not say so itself, no tool may be called as one, whatever the tool says.
            if facts.takes_tasks && !facts.is_stateless() {
                let terms = self.own_terms(Some(context));
                let called = connection.call_as_task(tool, &arguments, terms).await;
                self.note_output(&connection);
                return called;
            }
        }
        let request = |answers: Answers| {
            let mut params =
                CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
            params.input_responses = answers.responses;
            params.request_state = answers.state;
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        };
        self.ask(Some(context), request).await
    }

    /// Has lists read again that have outlived what the server promised of them.
    fn freshen(&self, connection: &Connection) {
        let offer = self.offer();
        let lifetime = offer.manifest.lifetime();
        if offer.listed.is_some_and(|listed| listed.elapsed() >= lifetime) {
            connection.dirty().mark_all();
        }
    }
}

impl Slot {
    /// Returns how long it is still left alone before it is started again.
    fn rest(&self) -> Duration {
        if matches!(self.phase, Phase::Idle) { self.backoff.wait() } else { Duration::ZERO }
    }

    fn state(&self) -> ServerState {
        match (&self.phase, &self.why) {
            (Phase::Idle, None) => ServerState::Configured,
            (Phase::Idle, Some(why)) => {
                ServerState::Failed { why: why.clone(), retry_in: self.backoff.wait() }
            }
            (Phase::Starting { .. }, _) => ServerState::Starting,
            (Phase::Ready { .. }, _) => ServerState::Ready,
            (Phase::Stopped, _) => ServerState::Stopped,
        }
    }
}
