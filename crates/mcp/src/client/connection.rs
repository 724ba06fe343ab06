//! One connection to one server: opened, used, and ended once.
//!
//! However it ends, every request that waits learns of it at once, with how it ended. A request that is
//! given up is also taken back: the server is told that nobody waits any more.

mod keep;
mod open;
mod tasks;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use convoke_tool::{Pauses, ToolContext};
use rmcp::model::{ClientRequest, PingRequest, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::calls::{CallUnderWay, Calls};
use super::failure::Failure;
use super::handler::{Dirty, Handler};
use super::http::{CUT_OFF, HttpFailure};
use super::lines::Notes;
use super::manifest::Facts;
use super::task::{Background, Farewells};

pub(super) use open::{OpenFailure, open};

/// How long it may take to learn how a connection ended that has just ended.
const END_PATIENCE: Duration = Duration::from_secs(3);
/// How long telling a server that nobody waits any more may take.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    handler: Handler,
    facts: Facts,
    /// How it ended, once it has.
    ended: watch::Receiver<Option<Arc<str>>>,
    stop: CancellationToken,
    /// Why it was given up here, if it was.
    given_up: Arc<OnceLock<String>>,
    /// Each request is an exchange of its own.
    over_http: bool,
    /// What is noticed of a program's output.
    notes: Option<Arc<Notes>>,
    /// What it is told before it ends.
    farewells: Farewells,
    _keeper: Background,
}

/// How long a request may take, and who waits for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    /// How long the server may be silent.
    pub(super) idle: Duration,
    /// How long it may take altogether.
    pub(super) total: Duration,
    /// The call it is made for.
    pub(super) context: Option<&'a ToolContext>,
}

impl Connection {
    pub(super) const fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) const fn handler(&self) -> &Handler {
        &self.handler
    }

    pub(super) fn dirty(&self) -> &Dirty {
        &self.handler.dirty
    }

    pub(super) fn calls(&self) -> &Arc<Calls> {
        &self.handler.calls
    }

    pub(super) const fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    /// Returns what the program wrote that is no message, if it did.
    pub(super) fn nonsense(&self) -> Option<String> {
        self.notes.as_ref()?.nonsense()
    }

    /// Returns the same, unless it was told already.
    pub(super) fn untold_nonsense(&self) -> Option<String> {
        self.notes.as_ref()?.untold_nonsense()
    }

    /// Returns how it ended, if it has. Over HTTP one that was given up has: there is no program that is still to be
    /// ended, and to give its session back may take a while.
    pub(super) fn end(&self) -> Option<Arc<str>> {
        let given_up = || self.given_up.get().filter(|_| self.over_http);
        self.ended.borrow().clone().or_else(|| given_up().map(|why| Arc::from(why.as_str())))
    }

    /// Waits until it has ended, and returns how.
    pub(super) async fn ended(&self) -> Arc<str> {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(how) => how.clone().unwrap_or_else(|| Arc::from("it ended")),
            Err(_) => Arc::from("it was stopped"),
        }
    }

    /// Begins to end it.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends it, because it is of no use any more.
    fn give_up(&self, why: &str) {
        // The first reason is the one that counts.
        drop(self.given_up.set(why.to_owned()));
        self.stop.cancel();
    }

    /// Makes a request and returns its result as it came.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        terms: Terms<'_>,
    ) -> Result<Value, Failure> {
        let tool = match &request {
            ClientRequest::CallToolRequest(call) => Some(&*call.params.name),
            _ => None,
        };
        let enrolled = self.calls().enrol(tool, terms.context);
        let result = self.exchange(request, enrolled.call(), terms).await;
        drop(enrolled);
        result.and_then(|result| {
            serde_json::to_value(result).map_err(|error| Failure::Unsent(error.to_string()))
        })
    }

    async fn exchange(
        &self,
        request: ClientRequest,
        call: &CallUnderWay,
        terms: Terms<'_>,
    ) -> Result<ServerResult, Failure> {
        // What is not wanted any more is not sent: the server might do it all the same.
        if terms.context.is_some_and(|context| context.cancellation().is_cancelled()) {
            return Err(Failure::Cancelled);
        }
        let begun = Instant::now();
        let sending = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
        let handle = tokio::select! {
            biased;
            sent = sending => sent,
            how = self.ended() => return Err(Failure::Ended(how)),
            () = tokio::time::sleep(terms.idle) => return Err(Failure::Timeout(terms.idle)),
        };
        let handle = match handle {
            Ok(handle) => handle,
            Err(error) => return Err(self.failure(error).await),
        };
        call.is_known_by(handle.id.clone(), handle.progress_token.clone());
        let mut waiting = Waiting(Some(handle), self.farewells.clone());
        let outcome = self.wait(&mut waiting, call, terms, begun).await;
        match outcome {
            Ok(answer) => {
                waiting.answered();
                match answer {
                    Ok(result) => Ok(result),
                    Err(error) => Err(self.failure(error).await),
                }
            }
            // Whoever waited is gone, and with that the server is told.
            Err(failure) => Err(failure),
        }
    }

    /// Waits for the answer, for as long as the terms allow. While a person is asked something, or logs in,
    /// time stands still.
    async fn wait(
        &self,
        waiting: &mut Waiting,
        call: &CallUnderWay,
        terms: Terms<'_>,
        begun: Instant,
    ) -> Result<Result<ServerResult, ServiceError>, Failure> {
        let mut silent_until = begun + terms.idle;
        let mut over_at = begun + terms.total;
        let interlude = &self.handler.interlude;
        let (mut logins, spent_before) = (interlude.follow(), interlude.spent());
        let mut asking_since = call.is_asking().then_some(begun);
        loop {
            let logs_in = interlude.is_on();
            let stands_still = asking_since.is_some() || logs_in;
            let _pause = terms.context.filter(|_| logs_in).map(ToolContext::pause);
            let over_at_last = over_at + interlude.spent().saturating_sub(spent_before);
            let Some(handle) = waiting.0.as_mut() else {
                return Err(Failure::Cancelled);
            };
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    return Ok(answer.unwrap_or(Err(ServiceError::TransportClosed)));
                }
                () = cancelled(terms.context) => return Err(Failure::Cancelled),
                how = self.ended() => return Err(Failure::Ended(how)),
                () = sign_of_life(call, &mut logins) => {
                    let now = Instant::now();
                    silent_until = now + terms.idle;
                    if call.is_asking() {
                        asking_since.get_or_insert(now);
                    } else if let Some(since) = asking_since.take() {
                        over_at += now - since;
                    }
                }
                () = tokio::time::sleep_until(silent_until), if !stands_still => {
                    return Err(Failure::Timeout(terms.idle));
                }
                () = tokio::time::sleep_until(over_at_last), if !stands_still => {
                    return Err(Failure::Timeout(terms.total));
                }
            }
        }
    }

    async fn failure(&self, error: ServiceError) -> Failure {
        match error {
            ServiceError::McpError(error) => {
                let message = error.message.into_owned();
                if error.code == CUT_OFF && self.is_gone().await {
                    self.give_up(&message);
                    return Failure::Ended(message.into());
                }
                Failure::Refused { code: error.code.0.into(), message, data: error.data }
            }
            ServiceError::TransportSend(error) => self.unsent(error.error.as_ref()).await,
            ServiceError::Cancelled { .. } => Failure::Cancelled,
            // One exchange ended without its answer; the others may go on.
            ServiceError::TransportClosed if self.over_http => {
                self.broke_off("the connection ended before the answer had come".to_owned()).await
            }
            ServiceError::TransportClosed => self.end_of_it("it closed the connection").await,
            other => Failure::Unsent(other.to_string()),
        }
    }

    async fn unsent(&self, error: &(dyn std::error::Error + Send + Sync + 'static)) -> Failure {
        match error.downcast_ref::<StreamableHttpError<HttpFailure>>() {
            Some(StreamableHttpError::Client(HttpFailure::Unauthorized(what))) => {
                Failure::Unauthorized(what.clone())
            }
            Some(StreamableHttpError::Client(failure @ HttpFailure::Unreachable { .. })) => {
                let why = failure.to_string();
                if self.is_gone().await {
                    self.give_up(&why);
                }
                Failure::Unsent(why)
            }
            Some(StreamableHttpError::Client(failure @ HttpFailure::Broken { .. })) => {
                self.broke_off(failure.to_string()).await
            }
            Some(StreamableHttpError::Client(failure)) if failure.was_refused() => {
                Failure::Unsent(failure.to_string())
            }
            Some(StreamableHttpError::Client(failure)) => Failure::Lost(failure.to_string()),
            Some(
                error @ (StreamableHttpError::HttpStatus(_) | StreamableHttpError::SessionExpired),
            ) => Failure::Unsent(error.to_string()),
            // It was asked, and what came back is of no use.
            Some(error) => Failure::Lost(error.to_string()),
            // A program whose input is closed is about to end, or has ended.
            None => self.end_of_it(&error.to_string()).await,
        }
    }

    /// An exchange broke off after it was begun.
    async fn broke_off(&self, why: String) -> Failure {
        if !self.is_gone().await {
            return Failure::Lost(why);
        }
        self.give_up(&why);
        Failure::Ended(why.into())
    }

    /// Finds out whether nobody answers any more. Over HTTP one exchange may break off while others go on.
    async fn is_gone(&self) -> bool {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let asking = async {
            let options = PeerRequestOptions::no_options();
            let handle = self.peer.send_cancellable_request(ping, options).await?;
            handle.rx.await.unwrap_or(Err(ServiceError::TransportClosed))
        };
        match tokio::time::timeout(END_PATIENCE, asking).await {
            Ok(Err(ServiceError::TransportSend(error))) => matches!(
                error.error.downcast_ref(),
                Some(StreamableHttpError::Client(
                    HttpFailure::Unreachable { .. } | HttpFailure::Broken { .. }
                ))
            ),
            Ok(Err(ServiceError::TransportClosed)) => true,
            // Whatever else is answered, or not yet: somebody is there.
            _ => false,
        }
    }

    /// The connection does not work any more: how it ended will be known in a moment.
    async fn end_of_it(&self, otherwise: &str) -> Failure {
        if let Ok(how) = tokio::time::timeout(END_PATIENCE, self.ended()).await {
            return Failure::Ended(how);
        }
        self.give_up(otherwise);
        Failure::Ended(otherwise.into())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A request that was sent. If it is dropped before it was answered, the server is told.
struct Waiting(Option<RequestHandle<RoleClient>>, Farewells);

impl Waiting {
    fn answered(&mut self) {
        self.0 = None;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            self.1.say(async move {
                let told = handle.cancel(Some("nobody waits for it any more".to_owned()));
                // A server that is gone needs not be told.
                drop(tokio::time::timeout(CANCEL_PATIENCE, told).await);
            });
        }
    }
}

/// Waits for progress, or for a question or a login to begin or end.
async fn sign_of_life(call: &CallUnderWay, logins: &mut Pauses) {
    tokio::select! {
        () = call.sign_of_life() => {}
        () = logins.next() => {}
    }
}

async fn cancelled(context: Option<&ToolContext>) {
    match context {
        Some(context) => context.cancelled().await,
        None => std::future::pending().await,
    }
}
