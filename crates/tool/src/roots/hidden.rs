//! Paths inside the roots that no tool may touch: credentials, and what this program itself is told and
//! remembers.
//!
//! As with roots, a path is not judged by its text alone. Whatever was opened is asked where it really is,
//! and what that answer names is refused before anything is read from it or written into it. A link, a
//! second name or a swap on the way changes what is opened, and with it the answer.

use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Root, normalise};
use crate::real::RealPlaces;

/// The hidden paths that lie in a set of roots, or around one, as they are spelled and where they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Hidden(Arc<[PathBuf]>);

/// What was opened is hidden.
#[derive(Debug, thiserror::Error)]
#[error("it is hidden from tools")]
struct Found;

impl Hidden {
    /// Hides these paths too, as far as the roots have anything to do with them.
    pub(super) fn and<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a Path>,
        roots: &[Arc<Root>],
    ) -> Self {
        let concerns = |path: &PathBuf| {
            let meets = |root: &Path| path.starts_with(root) || root.starts_with(path);
            roots.iter().any(|root| meets(&root.canonical) || meets(&root.spelled))
        };
        let mut places = RealPlaces::default();
        let spellings = paths.into_iter().filter(|path| path.is_absolute()).flat_map(|path| {
            let spelled = normalise(path);
            [places.of(&spelled), spelled]
        });
        let mut all: Vec<PathBuf> = self.0.to_vec();
        all.extend(spellings.filter(concerns));
        all.sort();
        all.dedup();
        Self(all.into())
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether a path is hidden, or lies in what is.
    pub(super) fn covers(&self, path: &Path) -> bool {
        self.paths().any(|hidden| path.starts_with(hidden))
    }

    /// Refuses what was opened, if it is hidden where it really is.
    pub(super) fn check(&self, opened: BorrowedFd<'_>) -> io::Result<()> {
        if self.is_empty() || !self.covers(&place_of(opened)?) { Ok(()) } else { Err(refused()) }
    }

    /// Refuses a name in an open directory that is hidden, or that something hidden lies in: moving that
    /// away would uncover it.
    pub(super) fn check_name(&self, directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let path = place_of(directory)?.join(name);
        let holds = self.paths().any(|hidden| hidden.starts_with(&path));
        if holds || self.covers(&path) { Err(refused()) } else { Ok(()) }
    }

    /// Refuses to make a directory that is hidden. One that something hidden may lie in one day is none.
    pub(super) fn check_new(&self, directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        if self.is_empty() || !self.covers(&place_of(directory)?.join(name)) {
            return Ok(());
        }
        Err(refused())
    }

    /// Returns what is hidden below an open directory, as paths from there.
    pub(super) fn below(&self, directory: BorrowedFd<'_>) -> io::Result<Vec<PathBuf>> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let start = place_of(directory)?;
        let below = self.paths().filter_map(|hidden| hidden.strip_prefix(&start).ok());
        Ok(below.map(Path::to_path_buf).collect())
    }
}

fn refused() -> io::Error {
    io::Error::other(Found)
}

/// Tells whether something was refused because it is hidden.
pub(super) fn is_hidden(error: &io::Error) -> bool {
    matches!(error.get_ref(), Some(inner) if inner.is::<Found>())
}

/// Asks the kernel where something that was opened is.
#[cfg(target_os = "linux")]
fn place_of(opened: BorrowedFd<'_>) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()))
}

#[cfg(target_vendor = "apple")]
fn place_of(opened: BorrowedFd<'_>) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let path = rustix::fs::getpath(opened)?;
    Ok(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
}

/// Where nobody can say, nothing is opened in roots that hold something hidden.
#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn place_of(_: BorrowedFd<'_>) -> io::Result<PathBuf> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "it cannot be told where it is"))
}
