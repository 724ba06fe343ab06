//! Runs work beside its owner. The only module of the client that spawns tasks.

use std::future::Future;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Work under way; dropping this stops it.
#[derive(Debug)]
pub(super) struct Background(JoinHandle<()>);

impl Background {
    #[expect(clippy::disallowed_methods, reason = "this is the spawner that others use")]
    pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs work that has an end of its own and that nobody waits for. Without a runtime it is left undone.
pub(super) fn leave(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        drop(runtime.spawn(work));
    }
}

/// What a server is still to be told, which nobody waits for before the connection ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Farewells(watch::Sender<usize>);

impl Farewells {
    /// Has something said beside its owner.
    pub(super) fn say(&self, words: impl Future<Output = ()> + Send + 'static) {
        self.0.send_modify(|open| *open += 1);
        let said = Said(self.0.clone());
        leave(async move {
            words.await;
            drop(said);
        });
    }

    /// Waits until all of it is said.
    pub(super) async fn said(&self) {
        // The sender is here: it cannot be gone.
        drop(self.0.subscribe().wait_for(|open| *open == 0).await);
    }
}

/// Counts something as said, also where it could not be.
struct Said(watch::Sender<usize>);

impl Drop for Said {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}
