//! Whose turn it is: how many calls run at once, and which of them runs alone.
//!
//! Agents take no turn: their own calls do, in the runs they start.

use std::path::PathBuf;
use std::sync::Arc;

use convoke_core::{Concurrency, Kind};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit};
use tokio::sync::{RwLock, Semaphore};

use crate::locks::{HeldPaths, PathLocks};

/// Gives out turns. Cheap to clone; clones give out the same ones.
#[derive(Clone, Debug)]
pub struct Turns {
    permits: Arc<Semaphore>,
    /// Held for writing by a call that wants to be alone, for reading by all others.
    quiet: Arc<RwLock<()>>,
    /// Whether a call that wants to be alone is.
    lets_be_alone: bool,
}

/// What a call holds while it runs. It is taken in this order, so nobody who holds a permit waits for
/// a lock. It is given back when the call has ended and nothing it started works on.
#[derive(Debug)]
#[expect(dead_code, reason = "held, not read")]
pub(crate) enum Turn {
    /// One call among others.
    Shared(OwnedRwLockReadGuard<()>, HeldPaths, Option<OwnedSemaphorePermit>),
    /// The only call.
    Alone(OwnedRwLockWriteGuard<()>, HeldPaths, Option<OwnedSemaphorePermit>),
    /// An agent: its own calls take what they need.
    Exempt,
}

impl Turns {
    /// Lets so many calls run at once: at least one.
    pub fn new(at_once: usize) -> Self {
        let permits = Arc::new(Semaphore::new(at_once.max(1)));
        Self { permits, quiet: Arc::default(), lets_be_alone: true }
    }

    /// Lets so many calls of strangers run at once: nobody is alone, since nobody knows what the others do. A path still
    /// has one writer.
    pub fn of_strangers(at_once: usize) -> Self {
        Self { lets_be_alone: false, ..Self::new(at_once) }
    }

    /// Waits for the turn of a call that writes these paths.
    pub(crate) async fn take(
        &self,
        kind: Kind,
        concurrency: Concurrency,
        (locks, writes): (&PathLocks, &[PathBuf]),
    ) -> Turn {
        if kind == Kind::Agent {
            return Turn::Exempt;
        }
        // The semaphore is never closed; without a permit the call would still be in order.
        let permit = async || Arc::clone(&self.permits).acquire_owned().await.ok();
        match concurrency {
            Concurrency::Exclusive if self.lets_be_alone => {
                let quiet = Arc::clone(&self.quiet).write_owned().await;
                let paths = locks.hold(writes.to_vec()).await;
                Turn::Alone(quiet, paths, permit().await)
            }
            Concurrency::Exclusive | Concurrency::Shared => {
                let quiet = Arc::clone(&self.quiet).read_owned().await;
                let paths = locks.hold(writes.to_vec()).await;
                Turn::Shared(quiet, paths, permit().await)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Takes a turn if that takes no waiting.
    fn take(turns: &Turns, kind: Kind, concurrency: Concurrency) -> Option<Turn> {
        turns.take(kind, concurrency, (&PathLocks::default(), &[])).now_or_never()
    }

    #[test]
    fn so_many_at_once_and_agents_beside_them() {
        let turns = Turns::new(2);
        let read = || take(&turns, Kind::Read, Concurrency::Shared);
        let (first, second) = (read(), read());
        assert!(first.is_some() && second.is_some());
        assert!(read().is_none());
        assert!(take(&turns, Kind::Agent, Concurrency::Shared).is_some());
        drop(first);
        assert!(read().is_some());
    }

    #[test]
    fn what_wants_to_be_alone_is() {
        let turns = Turns::new(3);
        let read = || take(&turns, Kind::Read, Concurrency::Shared);
        let execute = || take(&turns, Kind::Execute, Concurrency::Exclusive);
        let reading = read();
        assert!(execute().is_none());
        drop(reading);
        let alone = execute();
        assert!(alone.is_some() && read().is_none() && execute().is_none());
    }

    /// Bug: a command that one client of a server ran held up everybody else's calls.
    #[test]
    fn strangers_do_not_wait_for_each_other() {
        let turns = Turns::of_strangers(3);
        let execute = || take(&turns, Kind::Execute, Concurrency::Exclusive);
        let running = (execute(), execute());
        assert!(running.0.is_some() && running.1.is_some());
        assert!(take(&turns, Kind::Read, Concurrency::Shared).is_some());
    }

    #[test]
    fn a_path_has_one_writer() {
        let (turns, locks) = (Turns::new(3), PathLocks::default());
        let paths = ["/a".into()];
        let write = || turns.take(Kind::Edit, Concurrency::Shared, (&locks, &paths)).now_or_never();
        let first = write();
        assert!(first.is_some() && write().is_none());
        drop(first);
        assert!(write().is_some());
    }
}
