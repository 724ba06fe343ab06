//! Sessions of clients whose revision has them: how many there are, and when one ends.
//!
//! The library ends a session in which no message was sent for a while, even if a call is under way in
//! it all that time. So time is kept here: a session is idle when no request of it is being answered and
//! no stream of it is open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const SESSION_ID: &str = "mcp-session-id";

/// The sessions of one server.
#[derive(Debug)]
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    max: usize,
    /// Held while a session begins.
    begins: AsyncMutex<()>,
    idle: Duration,
    activity: Arc<Mutex<HashMap<String, Activity>>>,
}

#[derive(Debug)]
struct Activity {
    answering: usize,
    last: Instant,
    /// Cancelled when the session ends.
    end: CancellationToken,
}

impl Activity {
    fn new(last: Instant) -> Self {
        Self { answering: 0, last, end: CancellationToken::new() }
    }
}

/// The end of the session that a request belongs to, for whoever works on it.
#[derive(Clone, Debug)]
pub(in crate::serve) struct SessionEnd(pub(in crate::serve) CancellationToken);

impl Sessions {
    pub(super) fn new(max: usize, idle: Duration) -> Arc<Self> {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = None;
        let activity = Arc::default();
        let (manager, begins) = (Arc::new(manager), AsyncMutex::default());
        Arc::new(Self { manager, max, begins, idle, activity })
    }

    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.manager)
    }

    /// Lets one more session begin. Until that is dropped, no other one does. Where there is no room, the session
    /// that was idle for longest ends; there is none to end where all of them are being answered.
    pub(super) async fn begin(&self) -> Option<AsyncMutexGuard<'_, ()>> {
        let begins = self.begins.lock().await;
        let ids = self.ids().await;
        let has_room = ids.len() < self.max;
        // Sessions that never came back are noted here as well, so that the oldest of them goes first.
        let oldest = self.least_recently_used(ids);
        if !has_room {
            // The session is over whether or not its worker said goodbye.
            drop(self.manager.close_session(&oldest?).await);
            self.forget_ended().await;
        }
        Some(begins)
    }

    async fn ids(&self) -> Vec<SessionId> {
        self.manager.sessions.read().await.keys().cloned().collect()
    }

    /// Returns the session that was idle for longest. One that is being answered is not idle.
    fn least_recently_used(&self, ids: Vec<SessionId>) -> Option<SessionId> {
        let now = Instant::now();
        let mut activity = lock(&self.activity);
        let idle = ids.into_iter().filter_map(|id| {
            let known = activity.entry(id.to_string()).or_insert_with(|| Activity::new(now));
            (known.answering == 0).then_some((known.last, id))
        });
        idle.min_by_key(|(last, _)| *last).map(|(_, id)| id)
    }

    /// Marks the session of a request as active, until the mark is dropped.
    pub(super) async fn enter(&self, headers: &HeaderMap) -> Option<Active> {
        let id = headers.get(SESSION_ID)?.to_str().ok()?;
        let exists = self.manager.sessions.read().await.contains_key(id);
        exists.then(|| self.mark(id))
    }

    fn mark(&self, id: &str) -> Active {
        let now = Instant::now();
        let mut activity = lock(&self.activity);
        let known = activity.entry(id.to_owned()).or_insert_with(|| Activity::new(now));
        known.answering += 1;
        known.last = now;
        let end = known.end.clone();
        drop(activity);
        Active { id: id.to_owned(), end, activity: Arc::clone(&self.activity) }
    }

    /// Ends sessions in which nothing happens, again and again.
    pub(super) async fn end_idle_ones(&self) {
        let pause = (self.idle / 4).max(Duration::from_millis(10));
        loop {
            tokio::time::sleep(pause).await;
            self.end_those_idle().await;
        }
    }

    /// Ends every session.
    pub(super) async fn end_all(&self) {
        for id in self.ids().await {
            // It is over whether or not its worker said goodbye.
            drop(self.manager.close_session(&id).await);
        }
        self.forget_ended().await;
    }

    /// Forgets sessions that have ended, and tells whoever still works for them.
    pub(super) async fn forget_ended(&self) {
        let sessions = self.manager.sessions.read().await;
        lock(&self.activity).retain(|known, activity| {
            let lives = sessions.contains_key(known.as_str());
            if !lives {
                activity.end.cancel();
            }
            lives
        });
    }

    async fn end_those_idle(&self) {
        let ids = self.ids().await;
        let now = Instant::now();
        let idle: Vec<_> = {
            let mut activity = lock(&self.activity);
            ids.into_iter()
                .filter(|id| {
                    let known =
                        activity.entry(id.to_string()).or_insert_with(|| Activity::new(now));
                    known.answering == 0 && now.duration_since(known.last) >= self.idle
                })
                .collect()
        };
        for id in idle {
            drop(self.manager.close_session(&id).await);
        }
        self.forget_ended().await;
    }
}

/// A request of a session that is being answered.
#[derive(Debug)]
pub(super) struct Active {
    id: String,
    end: CancellationToken,
    activity: Arc<Mutex<HashMap<String, Activity>>>,
}

impl Active {
    /// Returns what says that the session is over.
    pub(super) fn end(&self) -> SessionEnd {
        SessionEnd(self.end.clone())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        if let Some(activity) = lock(&self.activity).get_mut(&self.id) {
            activity.answering = activity.answering.saturating_sub(1);
            activity.last = Instant::now();
        }
    }
}

fn lock(
    activity: &Mutex<HashMap<String, Activity>>,
) -> std::sync::MutexGuard<'_, HashMap<String, Activity>> {
    activity.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn exists(sessions: &Sessions, id: &str) -> bool {
        sessions.manager.sessions.read().await.contains_key(id)
    }

    /// Regression: the library alone ends a session in which a call runs for long without a word.
    #[tokio::test(start_paused = true)]
    async fn an_idle_session_ends_and_a_busy_one_does_not() {
        let sessions = Sessions::new(2, Duration::from_mins(15));
        let (idle, _idle) = sessions.manager.create_session().await.unwrap();
        assert!(sessions.begin().await.is_some());
        let (busy, _busy) = sessions.manager.create_session().await.unwrap();
        let mut headers = HeaderMap::new();
        assert!(sessions.enter(&headers).await.is_none());
        headers.insert(SESSION_ID, "made-up".parse().unwrap());
        assert!(sessions.enter(&headers).await.is_none());
        headers.insert(SESSION_ID, busy.parse().unwrap());
        let active = sessions.enter(&headers).await.unwrap();

        sessions.end_those_idle().await;
        tokio::time::advance(Duration::from_mins(14)).await;
        sessions.end_those_idle().await;
        assert!(exists(&sessions, &idle).await, "not yet");
        tokio::time::advance(Duration::from_mins(1)).await;
        sessions.end_those_idle().await;
        assert!(!exists(&sessions, &idle).await);
        tokio::time::advance(Duration::from_hours(5)).await;
        sessions.end_those_idle().await;
        assert!(exists(&sessions, &busy).await, "a request of it is being answered");
        let SessionEnd(end) = active.end();
        drop(active);
        sessions.end_those_idle().await;
        assert!(!end.is_cancelled());
        assert!(exists(&sessions, &busy).await, "its time begins when the answer has been sent");
        tokio::time::advance(Duration::from_mins(15)).await;
        sessions.end_those_idle().await;
        assert!(!exists(&sessions, &busy).await);
        assert!(end.is_cancelled() && sessions.begin().await.is_some());
    }

    async fn created(sessions: &Sessions) -> SessionId {
        let begins = sessions.begin().await.unwrap();
        let (id, _transport) = sessions.manager.create_session().await.unwrap();
        drop(begins);
        tokio::time::advance(Duration::from_secs(1)).await;
        id
    }

    #[tokio::test(start_paused = true)]
    async fn full_sessions_give_up_the_least_recently_used_idle_one() {
        let sessions = Sessions::new(3, Duration::from_mins(15));
        let (first, second) = (created(&sessions).await, created(&sessions).await);
        let third = created(&sessions).await;
        let mut headers = HeaderMap::new();
        headers.insert(SESSION_ID, first.parse().unwrap());
        let active = sessions.enter(&headers).await.unwrap();
        let fourth = created(&sessions).await;
        assert!(!exists(&sessions, &second).await, "the oldest of the idle ones");
        let fifth = created(&sessions).await;
        assert!(!exists(&sessions, &third).await);
        assert!(exists(&sessions, &first).await, "a call of it is under way");
        drop(active);
        let sixth = created(&sessions).await;
        assert!(!exists(&sessions, &fourth).await);
        for (id, why) in [(&first, "it was used last"), (&fifth, "newer"), (&sixth, "newest")] {
            assert!(exists(&sessions, id).await, "{why}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn full_sessions_refuse_a_new_one_where_all_are_being_answered() {
        let sessions = Sessions::new(1, Duration::from_mins(15));
        let only = created(&sessions).await;
        let mut headers = HeaderMap::new();
        headers.insert(SESSION_ID, only.parse().unwrap());
        let active = sessions.enter(&headers).await.unwrap();
        assert!(sessions.begin().await.is_none());
        drop(active);
        assert!(sessions.begin().await.is_some());
        assert!(!exists(&sessions, &only).await);
    }
}
