//! One writer of this program in a directory, across processes.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use cap_std::fs::{Dir, MetadataExt};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

/// The pause between two tries: writers hold the lock for about a millisecond.
const RETRY: Duration = Duration::from_millis(1);

/// The locks of one or two directories, held until this is dropped. They lie on the directories themselves, so no
/// file is left behind. A file system without such locks gives none.
#[derive(Debug)]
pub struct DirectoryLock {
    held: Vec<OwnedFd>,
    complete: bool,
}

impl DirectoryLock {
    /// Waits until no other writer of this program works in these directories, or until the call is over. It
    /// blocks the thread.
    pub fn hold(directories: &[&Dir], token: &CancellationToken) -> io::Result<Self> {
        let mut sorted = Vec::with_capacity(directories.len());
        for directory in directories {
            let metadata = directory.dir_metadata()?;
            sorted.push(((metadata.dev(), metadata.ino()), *directory));
        }
        // All writers take the locks in the same order, so none waits for another in a circle.
        sorted.sort_by_key(|(inode, _)| *inode);
        sorted.dedup_by_key(|(inode, _)| *inode);
        let mut lock = Self { held: Vec::with_capacity(sorted.len()), complete: true };
        for (_, directory) in sorted {
            match lock_one(directory, token)? {
                Some(held) => lock.held.push(held),
                None => lock.complete = false,
            }
        }
        Ok(lock)
    }

    /// Tells whether every directory is locked.
    pub(super) const fn is_complete(&self) -> bool {
        self.complete
    }
}

fn lock_one(directory: &Dir, token: &CancellationToken) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // A handle of its own: a lock belongs to an opened file, and copies of a handle share one.
    let Ok(own) = openat(directory, ".", flags, Mode::empty()) else { return Ok(None) };
    loop {
        match flock(&own, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(own)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(_) => return Ok(None),
        }
        if token.is_cancelled() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the call is over"));
        }
        std::thread::sleep(RETRY);
    }
}
