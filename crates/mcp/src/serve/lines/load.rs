//! How much a client has asked for and not yet taken.
//!
//! The library reads as fast as a client writes and keeps what it cannot answer yet. So reading stops
//! here when there is too much of it, and goes on when there is less.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, RequestId, ServerJsonRpcMessage};
use tokio::sync::Notify;

/// How many messages may wait until the client reads them.
const MAX_UNREAD: usize = 256;

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
    /// Messages that the client has not read.
    unread: usize,
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

    /// A request was read. Tells whether its id is free: two answers to one id could not be told apart.
    pub(super) fn opened(&self, id: RequestId) -> bool {
        self.lock().open.insert(id)
    }

    /// A client may take back what it asked for; then there is no answer.
    pub(super) fn taken_back(&self, message: &ClientJsonRpcMessage) {
        if let ClientJsonRpcMessage::Notification(told) = message
            && let ClientNotification::CancelledNotification(cancelled) = &told.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.lock().open.remove(id);
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
            state.open.remove(id);
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
