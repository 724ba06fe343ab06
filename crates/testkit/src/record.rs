//! What has happened so far, and how to wait for it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use crate::seen::Seen;

/// How many of each there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were accepted.
    pub accepted: usize,
    /// Connections that are open now.
    pub open: usize,
    /// Requests that arrived whole, of any kind.
    pub requests: usize,
    /// Answers that were sent as planned, cuts and other faults included.
    pub answered: usize,
    /// Answers that the client did not wait for: it closed the connection before their end.
    pub abandoned: usize,
}

/// Keeps the requests and the counts.
#[derive(Debug)]
pub(crate) struct Record {
    requests: Mutex<Requests>,
    arrived: Notify,
    counts: watch::Sender<Counts>,
}

#[derive(Debug, Default)]
struct Requests {
    seen: Vec<Arc<Seen>>,
    handed_out: usize,
}

impl Record {
    pub(crate) fn new() -> Self {
        Self {
            requests: Mutex::default(),
            arrived: Notify::new(),
            counts: watch::Sender::new(Counts::default()),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Counts)) {
        self.counts.send_modify(change);
    }

    pub(crate) async fn wait_until(&self, reached: impl Fn(&Counts) -> bool) {
        // The sender is `self`, so the wait cannot end for want of one.
        drop(self.counts.subscribe().wait_for(reached).await);
    }

    pub(crate) fn push(&self, seen: Arc<Seen>) {
        self.lock().seen.push(seen);
        self.arrived.notify_waiters();
    }

    pub(crate) fn requests(&self) -> Vec<Arc<Seen>> {
        self.lock().seen.clone()
    }

    /// Waits for the request after the last that was returned from here.
    pub(crate) async fn next_request(&self) -> Arc<Seen> {
        loop {
            let arrived = self.arrived.notified();
            if let Some(seen) = self.take_next() {
                return seen;
            }
            arrived.await;
        }
    }

    fn take_next(&self) -> Option<Arc<Seen>> {
        let mut requests = self.lock();
        let next = requests.seen.get(requests.handed_out).cloned()?;
        requests.handed_out += 1;
        Some(next)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection, counted as open until this is dropped, however the connection ends.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<Record>);

impl OpenConnection {
    pub(crate) fn count(record: &Arc<Record>) -> Self {
        record.change(|counts| {
            counts.accepted += 1;
            counts.open += 1;
        });
        Self(Arc::clone(record))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.change(|counts| counts.open -= 1);
    }
}
