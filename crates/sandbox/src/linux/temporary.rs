//! A directory for temporary files that only the programs of one spawner use.
//!
//! The usual one is shared with everybody, and closed where something hidden lies below it. This one is
//! made with the first program and removed with the spawner. Where it cannot be made, programs go
//! without: what they are told about temporary files is then what they were told before.
//!
//! A process that is killed leaves its directory behind. As long as it lives it holds a lock on the
//! directory, which ends with it whatever happens; so whoever makes the next one can tell what was left, and
//! removes it.

use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, Dir, FlockOperation, Mode, OFlags, Stat, flock, fstat, openat};
use tempfile::TempDir;

use crate::confinement::Confinement;

/// Nothing else has a name like this.
const PREFIX: &str = "convoke-tmp-";
const FOR_THE_OWNER_ALONE: u32 = 0o700;
/// Younger ones may be in the making, and not locked yet.
const OLD_ENOUGH: i64 = 60;
/// So many are removed at most: a program waits for it.
const MOST_REMOVED: usize = 8;
/// So many names are looked at at most.
const MOST_NAMES: usize = 10_000;

/// The directory, made or not.
#[derive(Debug)]
pub(super) struct OwnDirectory {
    /// Where it is made; nowhere, if it would be hidden there.
    below: Option<PathBuf>,
    made: OnceLock<Option<Made>>,
}

/// The directory. It is removed before the lock is let go.
#[derive(Debug)]
struct Made {
    directory: TempDir,
    _lock: Option<OwnedFd>,
}

impl OwnDirectory {
    /// Says where it will be. The confinement has been settled.
    pub(super) fn of(confinement: &Confinement) -> Self {
        let is_hidden =
            |path: &PathBuf| confinement.hidden.iter().any(|hidden| path.starts_with(hidden));
        let below = confinement.temporary.clone().filter(|path| !is_hidden(path));
        Self { below, made: OnceLock::new() }
    }

    /// Returns where it is, and makes it the first time.
    pub(super) fn path(&self) -> Option<&Path> {
        let made = self.made.get_or_init(|| make(self.below.as_ref()?));
        made.as_ref().map(|made| made.directory.path())
    }
}

fn make(below: &Path) -> Option<Made> {
    let directory = tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(Permissions::from_mode(FOR_THE_OWNER_ALONE))
        .tempdir_in(below)
        .ok()?;
    let lock = open(directory.path()).filter(is_free);
    // Where no lock can be held, nobody can tell who is alive.
    if let Some(now) = lock.as_ref().and_then(|lock| fstat(lock).ok()) {
        remove_leftovers(below, &now);
    }
    Some(Made { directory, _lock: lock })
}

/// Opens a directory, and nothing that leads to one.
fn open(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).ok()
}

/// Locks a directory; tells whether nobody else has.
fn is_free(directory: &OwnedFd) -> bool {
    flock(directory, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Removes what processes left that are no more. Ours was made just now, and tells whose they have to be and
/// how old. What cannot be removed stays.
fn remove_leftovers(below: &Path, ours: &Stat) {
    let is_leftover = |directory: &OwnedFd| {
        let is_old = |other: Stat| {
            other.st_uid == ours.st_uid
                && other.st_mode & 0o7777 == FOR_THE_OWNER_ALONE
                && other.st_mtime.saturating_add(OLD_ENOUGH) <= ours.st_mtime
        };
        fstat(directory).is_ok_and(is_old) && is_free(directory)
    };
    let leftovers = names(below).into_iter().filter_map(|name| {
        let path = below.join(name);
        // The lock is held until it is gone.
        let lock = open(&path).filter(is_leftover)?;
        Some((path, lock))
    });
    for (path, _lock) in leftovers.take(MOST_REMOVED) {
        // This follows no link, neither here nor below.
        drop(std::fs::remove_dir_all(path));
    }
}

/// Returns the names in a directory that are like ours.
fn names(below: &Path) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, below, flags, Mode::empty()).and_then(Dir::new);
    let entries = directory.into_iter().flatten().take(MOST_NAMES).flatten();
    let names = entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    names.filter(|name| name.starts_with(PREFIX)).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{DirBuilderExt, symlink};

    use rustix::fs::{Timespec, Timestamps, futimens};

    use super::*;

    /// Makes a directory with a file in it, as old as this.
    fn left(below: &Path, name: &str, mode: u32, seconds: i64) -> PathBuf {
        let path = below.join(name);
        std::fs::DirBuilder::new().mode(mode).create(&path).unwrap();
        std::fs::create_dir(path.join("inside")).unwrap();
        let directory = open(&path).unwrap();
        let mut then = fstat(&directory).unwrap().st_mtime;
        then -= seconds;
        let then = Timespec { tv_sec: then, tv_nsec: 0 };
        futimens(&directory, &Timestamps { last_access: then, last_modification: then }).unwrap();
        path
    }

    fn own(below: &Path) -> OwnDirectory {
        OwnDirectory { below: Some(below.to_owned()), made: OnceLock::new() }
    }

    #[test]
    fn what_a_killed_process_left_is_removed_by_the_next() {
        let below = tempfile::tempdir().unwrap();
        let below = below.path();
        let dead = left(below, "convoke-tmp-dead00", 0o700, 100);
        let alive = left(below, "convoke-tmp-alive0", 0o700, 100);
        let lock = open(&alive).filter(is_free).unwrap();
        let stays = [
            left(below, "convoke-tmp-young0", 0o700, 5),
            left(below, "convoke-tmp-shared", 0o755, 100),
            left(below, "convoke-other", 0o700, 100),
            left(below, "elsewhere", 0o700, 100),
            alive.clone(),
        ];
        symlink(below.join("elsewhere"), below.join("convoke-tmp-link00")).unwrap();
        let first = own(below);
        assert!(first.path().unwrap().is_dir());
        assert!(!dead.exists(), "its process is no more");
        for path in &stays {
            assert!(path.join("inside").exists(), "{} is not ours to remove", path.display());
        }
        assert!(below.join("convoke-tmp-link00").is_symlink());
        drop(lock);
        let second = own(below);
        assert!(second.path().is_some() && !alive.exists(), "now nobody holds it");
        let path = first.path().unwrap().to_owned();
        assert!(path.exists(), "the first still lives");
        drop(first);
        assert!(!path.exists());
    }

    /// However old it is: one that lives holds its lock.
    #[test]
    fn a_directory_in_use_is_not_removed_by_another_process() {
        let below = tempfile::tempdir().unwrap();
        let first = own(below.path());
        let path = first.path().unwrap();
        let long_ago = Timespec { tv_sec: 1, tv_nsec: 0 };
        let times = Timestamps { last_access: long_ago, last_modification: long_ago };
        futimens(open(path).unwrap(), &times).unwrap();
        assert!(own(below.path()).path().is_some());
        assert!(path.exists());
    }

    #[test]
    fn only_so_many_are_removed_at_once() {
        let below = tempfile::tempdir().unwrap();
        for number in 0..MOST_REMOVED + 3 {
            left(below.path(), &format!("{PREFIX}{number:06}"), 0o700, 100);
        }
        let first = own(below.path());
        assert!(first.path().is_some());
        assert_eq!(names(below.path()).len(), 1 + 3);
    }
}
