//! Whose turn it is: how many calls run at once, and which of them runs alone.
//!
//! Each served call can be stopped by itself, so each has an executor of its own; what an executor does
//! for the calls of one run is done here for the calls of one server. Agents take no turn: their own
//! calls do, in the runs they start.

use std::sync::Arc;

use convoke_core::{Concurrency, Kind, ToolSpec};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit};
use tokio::sync::{RwLock, Semaphore};

/// Gives out turns. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    permits: Arc<Semaphore>,
    /// Held for writing by a call that wants to be alone, for reading by all others.
    quiet: Arc<RwLock<()>>,
}

/// The right to run, until it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "held, not read")]
pub(super) enum Turn {
    Shared(OwnedRwLockReadGuard<()>, Option<OwnedSemaphorePermit>),
    Alone(OwnedRwLockWriteGuard<()>, Option<OwnedSemaphorePermit>),
    Exempt,
}

impl Turns {
    pub(super) fn new(at_once: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(at_once.max(1))), quiet: Arc::default() }
    }

    /// Waits for the turn of a call. The permit comes last, so nobody who holds one waits.
    pub(super) async fn take(&self, spec: Option<&ToolSpec>) -> Turn {
        if spec.is_some_and(|spec| spec.kind == Kind::Agent) {
            return Turn::Exempt;
        }
        // The semaphore is never closed; without a permit the call would still be in order.
        let permit = async || Arc::clone(&self.permits).acquire_owned().await.ok();
        if spec.is_some_and(|spec| spec.concurrency == Concurrency::Exclusive) {
            let quiet = Arc::clone(&self.quiet).write_owned().await;
            return Turn::Alone(quiet, permit().await);
        }
        let quiet = Arc::clone(&self.quiet).read_owned().await;
        Turn::Shared(quiet, permit().await)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn spec(kind: Kind) -> ToolSpec {
        ToolSpec::new("t", "", kind)
    }

    #[tokio::test]
    async fn so_many_at_once_and_agents_beside_them() {
        let turns = Turns::new(2);
        let read = spec(Kind::Read);
        let first = turns.take(Some(&read)).await;
        let _second = turns.take(Some(&read)).await;
        assert!(turns.take(Some(&read)).now_or_never().is_none());
        assert!(turns.take(Some(&spec(Kind::Agent))).now_or_never().is_some());
        drop(first);
        assert!(turns.take(Some(&read)).now_or_never().is_some());
    }

    #[tokio::test]
    async fn what_wants_to_be_alone_is() {
        let turns = Turns::new(3);
        let (read, execute) = (spec(Kind::Read), spec(Kind::Execute));
        let reading = turns.take(Some(&read)).await;
        assert!(turns.take(Some(&execute)).now_or_never().is_none());
        drop(reading);
        let _alone = turns.take(Some(&execute)).await;
        assert!(turns.take(Some(&read)).now_or_never().is_none());
    }
}
