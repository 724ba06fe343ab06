//! What becomes of a server, and how others learn of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{broadcast, watch};

/// How many changes a listener may be behind before it misses some.
const KEPT_CHANGES: usize = 256;
/// How many warnings are kept; a server that earns more has said enough.
const MAX_WARNINGS: usize = 100;

/// What a server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// It was not needed yet.
    Configured,
    /// It is being started, or asked what it offers.
    Starting,
    /// It can be called.
    Ready,
    /// It could not be started, or has ended. The next use starts it again.
    Failed {
        /// Why, for a person.
        why: String,
        /// How long calls fail without a try; zero if the next one tries.
        retry_in: Duration,
    },
    /// It was stopped, and stays so until it is started again.
    Stopped,
}

impl ServerState {
    /// Returns the word this state has in events.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Failed { .. } => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// Returns why, where there is a reason.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed { why, .. } => Some(why),
            _ => None,
        }
    }
}

/// Something that happened to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It does something else now.
    State {
        /// Which server.
        server: String,
        /// What it does.
        state: ServerState,
    },
    /// It offers something else now.
    Offer {
        /// Which server.
        server: String,
    },
    /// There is something to know.
    Warning(Warning),
}

/// Something to know about a server that stops nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Which server.
    pub server: String,
    /// What, for a person.
    pub message: String,
    /// What it is about, in a word.
    pub(super) kind: &'static str,
}

/// The kind of a warning that a program writes to its output what is no message.
pub(super) const OUTPUT: &str = "output";

impl Warning {
    /// Tells whether it is about what a program writes beside its messages. It may be what keeps it from working well.
    pub fn is_about_output(&self) -> bool {
        self.kind == OUTPUT
    }
}

/// Follows what happens to all servers.
#[derive(Debug)]
pub struct Changes(broadcast::Receiver<Change>);

impl Changes {
    /// Waits for the next change; `None` once the servers are gone. Whoever is far behind misses the
    /// oldest ones; what a server is doing now can always be asked.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            match self.0.recv().await {
                Ok(change) => return Some(change),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

/// What all servers tell about themselves.
#[derive(Debug)]
pub(super) struct News {
    changes: broadcast::Sender<Change>,
    /// Grows with every change; unlike the changes it cannot be missed.
    generation: watch::Sender<u64>,
    /// The latest of each kind, so that what happens again and again is kept once.
    warnings: Mutex<BTreeMap<(String, &'static str), String>>,
}

impl Default for News {
    fn default() -> Self {
        let (changes, _) = broadcast::channel(KEPT_CHANGES);
        Self { changes, generation: watch::Sender::new(0), warnings: Mutex::default() }
    }
}

impl News {
    pub(super) fn tell(&self, change: Change) {
        // Nobody has to listen.
        drop(self.changes.send(change));
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Tells a warning, unless the same was told before. There is one of each `kind` a server.
    pub(super) fn warn(&self, server: &str, kind: &'static str, message: String) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (server.to_owned(), kind);
        let is_new = warnings.get(&key) != Some(&message);
        if !is_new || (warnings.len() >= MAX_WARNINGS && !warnings.contains_key(&key)) {
            return;
        }
        warnings.insert(key, message.clone());
        drop(warnings);
        self.tell(Change::Warning(Warning { server: server.to_owned(), message, kind }));
    }

    /// Takes a warning back: it does not hold any more.
    pub(super) fn settle(&self, server: &str, kind: &'static str) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.remove(&(server.to_owned(), kind));
    }

    pub(super) fn warnings(&self) -> Vec<Warning> {
        let warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let warning = |((server, kind), message): (&(String, &'static str), &String)| Warning {
            server: server.clone(),
            message: message.clone(),
            kind,
        };
        warnings.iter().map(warning).collect()
    }

    pub(super) fn follow(&self) -> Changes {
        Changes(self.changes.subscribe())
    }

    pub(super) fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listener_that_is_far_behind_goes_on_with_the_newest() {
        let news = News::default();
        let mut changes = news.follow();
        for number in 0..KEPT_CHANGES + 10 {
            news.tell(Change::Offer { server: number.to_string() });
        }
        assert_eq!(changes.next().await, Some(Change::Offer { server: "10".into() }));
        drop(news);
        for _ in 0..KEPT_CHANGES - 1 {
            assert!(changes.next().await.is_some());
        }
        assert_eq!(changes.next().await, None);
    }

    #[test]
    fn the_same_warning_is_told_once() {
        let news = News::default();
        let before = *news.generation().borrow();
        news.warn("s", "pages", "too many".into());
        news.warn("s", "pages", "too many".into());
        assert_eq!(*news.generation().borrow(), before + 1);
        news.warn("s", "pages", "far too many".into());
        assert_eq!(news.warnings().len(), 1);
        news.settle("s", "pages");
        assert!(news.warnings().is_empty());
    }
}
