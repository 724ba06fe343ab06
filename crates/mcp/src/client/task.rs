//! Runs work beside its owner. The only module of the client that spawns tasks.

use std::future::Future;

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
