//! Who works on a run: one process at a time.
//!
//! What counts is the lock that the operating system holds on the journal itself; it goes when its
//! process does, however that ends. The file `lock` only says who it is, for messages. Where that file
//! is left and the lock is free, its process died.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use convoke_core::Timestamp;
use serde::{Deserialize, Serialize};

use crate::files;

/// How often somebody who only looks may be in the way of somebody who wants the lock.
const ATTEMPTS: usize = 1000;
/// How long a lock is waited for whose owner is gone.
const HANDOVER: Duration = Duration::from_millis(300);
/// How often it is tried meanwhile.
const HANDOVER_STEP: Duration = Duration::from_millis(2);

/// The process that works on a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its number.
    pub pid: u32,
    /// The machine it runs on.
    pub host: String,
    /// Since when it works on the run.
    pub since: Timestamp,
}

impl Owner {
    /// Describes this process.
    pub(crate) fn this_process(since: Timestamp) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { pid: std::process::id(), host, since }
    }

    /// Reads who said that they work on a run.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&files::read(&path_in(directory)).ok()?).ok()
    }
}

impl Owner {
    /// Tells whether it may still be there: one on another machine always may. One that ended and that its parent has
    /// not looked after yet holds nothing any more.
    pub(crate) fn is_alive(&self) -> bool {
        let here = Self::this_process(self.since).host == self.host;
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        let is_there = |pid| {
            rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
                && !files::is_zombie(self.pid)
        };
        !here || pid.is_some_and(is_there)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, host, since } = self;
        let seconds = since.as_millis().div_euclid(1000).rem_euclid(86_400);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let date = since.date();
        write!(
            formatter,
            "process {pid} on `{host}` since {date} {hour:02}:{minute:02}:{second:02} UTC"
        )
    }
}

/// Returns where a run says who works on it.
pub(crate) fn path_in(directory: &Path) -> PathBuf {
    directory.join("lock")
}

/// Takes the lock of a journal; tells whether it could be had.
///
/// A process that only looks whether there is an owner holds the lock for a moment, shared. It is told
/// from an owner by taking the lock shared too, and then it is asked again.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    for _ in 0..ATTEMPTS {
        if taken(file.try_lock())? {
            return Ok(true);
        }
        if !taken(file.try_lock_shared())? {
            return Ok(false);
        }
        file.unlock()?;
        std::thread::yield_now();
    }
    Ok(false)
}

/// Takes the lock of a journal in this directory, like [`lock`]. Where the process that said it works on the run is
/// gone, waits a moment: a program that it was starting when it ended has the lock until it is itself.
pub(crate) fn lock_after(directory: &Path, file: &File) -> io::Result<bool> {
    let until = Instant::now() + HANDOVER;
    while !lock(file)? {
        let is_left = Owner::read(directory).is_some_and(|owner| !owner.is_alive());
        if !is_left || Instant::now() >= until {
            return Ok(false);
        }
        std::thread::sleep(HANDOVER_STEP);
    }
    Ok(true)
}

/// Tells whether a process holds the lock of a journal.
pub(crate) fn is_locked(file: &File) -> io::Result<bool> {
    let free = taken(file.try_lock_shared())?;
    if free {
        file.unlock()?;
    }
    Ok(!free)
}

fn taken(attempt: Result<(), TryLockError>) -> io::Result<bool> {
    match attempt {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_told_in_words() {
        let since = Timestamp::from_millis(1_772_368_496_000);
        let owner = Owner { pid: 7, host: "box".into(), since };
        assert_eq!(owner.to_string(), "process 7 on `box` since 2026-03-01 12:34:56 UTC");
    }

    #[test]
    fn one_who_looks_is_not_in_the_way() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let file = files::create(&path).unwrap();
        let looking = files::open(&path).unwrap();
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                for _ in 0..2000 {
                    is_locked(&looking).unwrap();
                }
            });
            for _ in 0..2000 {
                assert!(lock(&file).unwrap());
                file.unlock().unwrap();
            }
            looks.join().unwrap();
        });
        assert!(!is_locked(&looking).unwrap());
        assert!(lock(&file).unwrap());
        assert!(is_locked(&looking).unwrap());
        assert!(!lock(&files::open(&path).unwrap()).unwrap());
    }
}
