//! One writer a path, across a whole tree of runs.
//!
//! Locks are taken in sorted order, all of them before the call begins, and held only by calls that
//! do the work themselves; so nobody who holds one waits for somebody who wants one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The locks of a tree of runs. Cheap to clone; clones are the same locks.
#[derive(Clone, Debug, Default)]
pub struct PathLocks(Arc<Mutex<HashMap<PathBuf, Arc<AsyncMutex<()>>>>>);

/// Locks held; dropping this gives them back.
#[derive(Debug)]
pub(crate) struct HeldPaths {
    locks: PathLocks,
    held: Vec<(PathBuf, OwnedMutexGuard<()>)>,
}

impl PathLocks {
    /// Waits until these paths are free and takes them.
    pub(crate) async fn hold(&self, mut paths: Vec<PathBuf>) -> HeldPaths {
        paths.sort_unstable();
        paths.dedup();
        let mut held = HeldPaths { locks: self.clone(), held: Vec::with_capacity(paths.len()) };
        for path in paths {
            let guard = self.lock_of(&path).lock_owned().await;
            held.held.push((path, guard));
        }
        held
    }

    fn lock_of(&self, path: &Path) -> Arc<AsyncMutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(locks.entry(path.to_path_buf()).or_default())
    }
}

impl Drop for HeldPaths {
    fn drop(&mut self) {
        let mut locks = self.locks.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, guard) in self.held.drain(..) {
            drop(guard);
            // The table and nobody else: no one waits for it.
            if locks.get(&path).is_some_and(|lock| Arc::strong_count(lock) == 1) {
                locks.remove(&path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_path_has_one_holder_and_the_table_empties() {
        let locks = PathLocks::default();
        let first = locks.hold(vec!["/b".into(), "/a".into(), "/a".into()]).await;
        let waiting = tokio::time::timeout(Duration::from_secs(1), locks.hold(vec!["/a".into()]));
        assert!(waiting.await.is_err());
        drop(first);
        drop(locks.hold(vec!["/a".into()]).await);
        assert!(locks.0.lock().unwrap().is_empty());
    }
}
