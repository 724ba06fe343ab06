//! How much a client has asked for and not yet taken.
//!
//! The library reads as fast as a client writes and keeps what it cannot answer yet. So reading stops
//! here when there is too much of it, and goes on when there is less.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcRequest, RequestId,
    ServerJsonRpcMessage,
};
use tokio::sync::Notify;

/// How many messages may wait until the client reads them.
const MAX_UNREAD: usize = 256;
/// How many subscriptions one client has at once. They last, so nobody waits until there are fewer.
pub(super) const MAX_LISTENING: usize = 16;

/// What is under way between a server and one client.
pub(super) struct Load {
    state: Mutex<State>,
    less: Notify,
    max_requests: usize,
}

#[derive(Default)]
struct State {
    /// Requests that were neither answered nor taken back.
    open: HashSet<RequestId>,
    /// Subscriptions, which are answered when they end.
    listening: HashSet<RequestId>,
    /// Messages that the client has not read.
    unread: usize,
}

/// What becomes of a request that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    Yes,
    /// Its id is in use: two answers to one id could not be told apart.
    TakenId,
    /// There are too many of its kind.
    TooMany,
}

impl Load {
    pub(super) fn new(max_requests: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), less: Notify::new(), max_requests })
    }

    /// Waits until there is little enough to read more.
    pub(super) async fn bearable(&self) {
        while self.is_too_much() {
            self.less.notified().await;
        }
    }

    /// A request was read.
    pub(super) fn opened(&self, request: &JsonRpcRequest<ClientRequest>) -> Opened {
        let mut state = self.lock();
        let id = &request.id;
        if state.open.contains(id) || state.listening.contains(id) {
            return Opened::TakenId;
        }
        if !matches!(request.request, ClientRequest::SubscriptionsListenRequest(_)) {
            state.open.insert(id.clone());
            return Opened::Yes;
        }
        if state.listening.len() >= MAX_LISTENING {
            return Opened::TooMany;
        }
        state.listening.insert(id.clone());
        Opened::Yes
    }

    /// A client may take back what it asked for; then there is no answer.
    pub(super) fn taken_back(&self, message: &ClientJsonRpcMessage) {
        if let ClientJsonRpcMessage::Notification(told) = message
            && let ClientNotification::CancelledNotification(cancelled) = &told.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.lock().close(id);
        }
    }

    /// A message is about to be written; it is unread until the mark is dropped.
    pub(super) fn sending(self: &Arc<Self>, message: &ServerJsonRpcMessage) -> Unread {
        let answered = match message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let mut state = self.lock();
        state.unread += 1;
        if let Some(id) = answered {
            state.close(id);
        }
        drop(state);
        Unread(Arc::clone(self))
    }

    fn is_too_much(&self) -> bool {
        let state = self.lock();
        state.unread >= MAX_UNREAD || state.open.len() >= self.max_requests
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close(&mut self, id: &RequestId) {
        self.open.remove(id);
        self.listening.remove(id);
    }
}

/// A message that was not yet read.
pub(super) struct Unread(Arc<Load>);

impl Drop for Unread {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.unread = state.unread.saturating_sub(1);
        drop(state);
        self.0.less.notify_one();
    }
}
