//! The directories tools may touch, held open.
//!
//! A path is never judged by its text alone. It is cut into a root and a path below it, and then
//! opened *relative to that root's directory handle*, where the kernel (`openat2` on Linux) or a
//! component-by-component walk (elsewhere) refuses to leave it. A symbolic link that is swapped in
//! between check and use is refused by the very call that opens the file, so there is nothing to race.
//!
//! Links that stay inside are followed, also absolute ones and those from one root into another: such
//! a path is taken apart again and opened below the root it leads to, under the same guard.
//!
//! Some paths below the roots are hidden (`hidden`): no tool reads, writes, lists or moves them.

mod hidden;

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions, OpenOptionsExt};
use convoke_core::ToolError;
use serde_json::json;

use self::hidden::{Hidden, is_hidden};
use crate::file_error::{file_error, is_escape};
use crate::real::real_place;

/// A directory that could not be opened as a root.
#[derive(Debug, thiserror::Error)]
#[error("allowed path `{}` cannot be opened", path.display())]
pub struct RootError {
    /// The directory.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// The directories tools may touch. Cheap to clone.
#[derive(Clone, Default)]
pub struct Roots {
    roots: Arc<[Arc<Root>]>,
    hidden: Hidden,
}

struct Root {
    /// As it was given, made absolute by the caller and normalised.
    spelled: PathBuf,
    /// Where it really is.
    canonical: PathBuf,
    directory: Dir,
}

impl fmt::Debug for Roots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.paths()).finish()
    }
}

impl Roots {
    /// Allows nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Opens each directory. Paths must be absolute and exist.
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self, RootError> {
        let open = |path: P| {
            let path = path.as_ref();
            Root::open(path).map(Arc::new).map_err(|source| RootError { path: path.into(), source })
        };
        let roots = paths.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { roots: roots.into(), hidden: Hidden::default() })
    }

    /// Returns the same directories without these paths, wherever they lie in them: no tool reads, writes,
    /// lists or moves what is there. They need not exist. A relative path hides nothing.
    #[must_use]
    pub fn hiding<P: AsRef<Path>>(&self, paths: impl IntoIterator<Item = P>) -> Self {
        let paths: Vec<P> = paths.into_iter().collect();
        let hidden = self.hidden.and(paths.iter().map(AsRef::as_ref), &self.roots);
        Self { roots: Arc::clone(&self.roots), hidden }
    }

    /// Returns the directories, as they really are.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.canonical.as_path())
    }

    /// Returns what is inside both sets: the one can only narrow the other.
    #[must_use]
    pub fn narrowed_by(&self, other: &Self) -> Self {
        let inside = |root: &Arc<Root>, set: &Self| {
            set.roots.iter().any(|outer| root.canonical.starts_with(&outer.canonical))
        };
        let mut kept: Vec<_> =
            self.roots.iter().filter(|root| inside(root, other)).cloned().collect();
        for root in other.roots.iter().filter(|root| inside(root, self)) {
            if !kept.iter().any(|known| known.canonical == root.canonical) {
                kept.push(Arc::clone(root));
            }
        }
        let hidden = self.hidden.and(other.hidden.paths(), &kept);
        Self { roots: kept.into(), hidden }
    }

    /// Finds the root a path lies in. A relative path starts at `base`.
    ///
    /// This looks at text only and opens nothing; whether the path really stays inside, and leads to nothing
    /// hidden, is decided when the [`Place`] is opened.
    pub fn locate(&self, base: &Path, path: &str) -> Result<Place, ToolError> {
        if path.is_empty() {
            return Err(ToolError::validation(["the path is empty"]));
        }
        if path.len() > MAX_PATH_BYTES {
            return Err(ToolError::validation([format!(
                "the path is {} bytes long; no path is longer than {MAX_PATH_BYTES}",
                path.len()
            )]));
        }
        if path.contains('\0') {
            return Err(ToolError::validation([format!("the path {path:?} contains a NUL byte")]));
        }
        let normalised = normalise(&base.join(path));
        if self.hidden.covers(&normalised) {
            return Err(Self::is_hidden(path));
        }
        let (root, relative) = self.split(&normalised).ok_or_else(|| self.access_denied(path))?;
        Ok(Place { roots: self.clone(), root, relative, spelled: path.to_owned() })
    }

    fn split(&self, absolute: &Path) -> Option<(Arc<Root>, PathBuf)> {
        let mut candidates = self.roots.iter().filter_map(|root| {
            let rest = absolute
                .strip_prefix(&root.spelled)
                .or_else(|_| absolute.strip_prefix(&root.canonical));
            rest.ok().map(|rest| (Arc::clone(root), rest.to_path_buf()))
        });
        let first = candidates.next()?;
        Some(candidates.fold(first, |best, next| {
            if next.1.components().count() < best.1.components().count() { next } else { best }
        }))
    }

    fn is_hidden(path: &str) -> ToolError {
        ToolError::permission(format!(
            "Access denied: `{path}` is hidden from tools: credentials are kept there, or the settings \
             and the state of this program. Do it without, or let a person do it"
        ))
        .with_details(json!({ "hidden": path }))
    }

    fn access_denied(&self, path: &str) -> ToolError {
        let roots: Vec<String> = self.paths().map(|root| format!("`{}`", root.display())).collect();
        let allowed = if roots.is_empty() { "no path is allowed".into() } else { roots.join(", ") };
        ToolError::permission(format!(
            "Access denied: `{path}` is outside the allowed paths ({allowed})"
        ))
        .with_details(json!({ "outside": path, "allowedPaths": self.paths().collect::<Vec<_>>() }))
    }
}

impl Root {
    fn open(path: &Path) -> io::Result<Self> {
        if !path.is_absolute() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path"));
        }
        let canonical = path.canonicalize()?;
        let directory = Dir::open_ambient_dir(&canonical, ambient_authority())?;
        Ok(Self { spelled: normalise(path), canonical, directory })
    }
}

/// Removes `.` and resolves `..` by text. What is left of a path that climbs above `/` is `/`.
fn normalise(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// What to do about directories that do not exist yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingParents {
    /// Make them.
    Create,
    /// Fail.
    Refuse,
}

/// A path inside an allowed root, not opened yet.
#[derive(Clone)]
pub struct Place {
    roots: Roots,
    root: Arc<Root>,
    relative: PathBuf,
    spelled: String,
}

impl fmt::Debug for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Place").field(&self.absolute()).finish()
    }
}

impl Place {
    /// Returns the path as the caller spelled it, for messages.
    pub fn spelled(&self) -> &str {
        &self.spelled
    }

    /// Returns the absolute path, links not resolved.
    pub fn absolute(&self) -> PathBuf {
        self.root.canonical.join(&self.relative)
    }

    /// Tells whether this is the absolute path, links not resolved.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        path.strip_prefix(&self.root.canonical).is_ok_and(|below| below == self.relative)
    }

    /// Returns the handle of the root and the path below it, links not resolved.
    pub fn root(&self) -> (BorrowedFd<'_>, &Path) {
        (self.root.directory.as_fd(), &self.relative)
    }

    /// Returns the absolute path with links resolved as far as it exists: two spellings of one file
    /// give the same answer.
    pub fn resolved(&self) -> PathBuf {
        real_place(&self.absolute())
    }

    /// Returns the absolute path with the links above its last name resolved: a link at the end stands for itself.
    pub fn resolved_name(&self) -> PathBuf {
        let absolute = self.absolute();
        match (absolute.parent(), absolute.file_name()) {
            (Some(above), Some(name)) => real_place(above).join(name),
            _ => absolute,
        }
    }

    /// Opens a regular file for reading. Directories, pipes and devices are refused, without waiting
    /// for whoever is at the other end.
    pub fn open_file(&self) -> Result<(File, Metadata), ToolError> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(NO_WAITING);
        let file = self
            .opened(|root, path| root.open_with(path, &options))
            .map_err(|e| self.error(&e, "read"))?;
        let metadata = file.metadata().map_err(|e| self.error(&e, "read"))?;
        if metadata.is_file() {
            return Ok((file.into_std(), metadata));
        }
        let what = if metadata.is_dir() { "a directory" } else { "not a regular file" };
        Err(ToolError::failed(format!(
            "`{}` is {what}, so it cannot be read as a file",
            self.spelled
        )))
    }

    /// Opens a directory.
    pub fn open_directory(&self) -> Result<Dir, ToolError> {
        self.opened(|root, path| root.open_dir(path)).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory if self.metadata().is_ok() => {
                ToolError::failed(format!("`{}` is not a directory", self.spelled))
            }
            _ => self.error(&error, "open"),
        })
    }

    /// Returns what the path leads to, links followed.
    pub fn metadata(&self) -> Result<Metadata, ToolError> {
        let looked = if self.roots.hidden.is_empty() {
            self.guarded(|root, path| root.metadata(path))
        } else {
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(ONLY_LOOKING);
            self.opened(|root, path| root.open_with(path, &options))
                .and_then(|file| file.metadata())
        };
        looked.map_err(|error| self.error(&error, "look at"))
    }

    /// Returns what is hidden below this place, which was opened as a directory, as paths from there.
    pub fn hidden_below(&self, opened: BorrowedFd<'_>) -> Result<Vec<PathBuf>, ToolError> {
        self.roots.hidden.below(opened).map_err(|error| self.error(&error, "list"))
    }

    /// Opens the directory that holds the path and returns it with the name in it.
    ///
    /// With `FinalLink::Follow` a link at the end is followed, so that writing through a link changes
    /// the file it points to; without, the link itself is meant. A directory that something hidden lies
    /// in is refused like what is hidden.
    pub fn open_parent(
        &self,
        missing: MissingParents,
        link: FinalLink,
    ) -> Result<(Dir, OsString), ToolError> {
        let mut place = self.clone();
        for _ in 0..MAX_LINKS {
            let name = place.relative.file_name().map(OsString::from).ok_or_else(|| {
                ToolError::failed(format!("`{}` is an allowed root itself", self.spelled))
            })?;
            let directory =
                place.open_or_create_parent(missing).map_err(|e| self.error(&e, "open"))?;
            let named = self.roots.hidden.check_name(directory.as_fd(), &name);
            named.map_err(|error| self.error(&error, "open"))?;
            let target = match link {
                FinalLink::Keep => None,
                FinalLink::Follow => directory.read_link_contents(&name).ok(),
            };
            let Some(target) = target else { return Ok((directory, name)) };
            let absolute = place.link_target(&target);
            let (root, relative) = self
                .roots
                .split(&absolute)
                .ok_or_else(|| self.roots.access_denied(&self.spelled))?;
            place = Self { root, relative, ..place };
        }
        Err(ToolError::failed(format!("`{}` goes through too many links", self.spelled)))
    }

    /// Works out where a link at this place leads. Its target counts from where the link really is, which
    /// its path, going through other links, may not show.
    fn link_target(&self, target: &Path) -> PathBuf {
        let parent = self.absolute().parent().map(real_place).unwrap_or_default();
        let joined = parent.join(target);
        match (joined.parent(), joined.file_name()) {
            (Some(directory), Some(name)) => real_place(directory).join(name),
            _ => normalise(&joined),
        }
    }

    fn open_or_create_parent(&self, missing: MissingParents) -> io::Result<Dir> {
        match self.above() {
            Some(above) => above.open_or_create(missing),
            None => self.root.directory.try_clone(),
        }
    }

    /// Opens this directory. Those that are missing are made one by one, each in one that was opened.
    fn open_or_create(&self, missing: MissingParents) -> io::Result<Dir> {
        match self.opened(|root, path| root.open_dir(path)) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && missing == MissingParents::Create =>
            {
                let Some(name) = self.relative.file_name() else { return Err(error) };
                let directory = self.open_or_create_parent(missing)?;
                self.roots.hidden.check_new(directory.as_fd(), name)?;
                match directory.create_dir(name) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                    _ => self.opened(|root, path| root.open_dir(path)),
                }
            }
            opened => opened,
        }
    }

    /// Returns the directory this is in, unless it is a root.
    fn above(&self) -> Option<Self> {
        let parent = self.relative.parent()?;
        Some(Self { relative: parent.to_path_buf(), ..self.clone() })
    }

    /// Turns an I/O error about this path into one the model can act on.
    pub fn error(&self, error: &io::Error, action: &str) -> ToolError {
        if is_hidden(error) {
            Roots::is_hidden(&self.spelled)
        } else if is_escape(error) {
            self.roots.access_denied(&self.spelled)
        } else {
            file_error(error, action, &self.spelled)
        }
    }

    /// Opens something below the root, and refuses what is hidden where it really is.
    fn opened<T: AsFd>(&self, open: impl Fn(&Dir, &Path) -> io::Result<T>) -> io::Result<T> {
        let opened = self.guarded(open)?;
        self.roots.hidden.check(opened.as_fd())?;
        Ok(opened)
    }

    /// Does something below the root. If a link led out of it, but into an allowed root, does it there.
    fn guarded<T>(&self, action: impl Fn(&Dir, &Path) -> io::Result<T>) -> io::Result<T> {
        let path =
            if self.relative.as_os_str().is_empty() { Path::new(".") } else { &self.relative };
        match action(&self.root.directory, path) {
            Err(error) if is_escape(&error) => {
                let Some((root, relative)) = self.roots.split(&self.resolved()) else {
                    return Err(error);
                };
                let path = if relative.as_os_str().is_empty() { Path::new(".") } else { &relative };
                action(&root.directory, path)
            }
            done => done,
        }
    }
}

/// Whether a link at the end of a path stands for itself or for what it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalLink {
    /// For itself.
    Keep,
    /// For what it points to.
    Follow,
}

/// As long as the kernel takes.
const MAX_PATH_BYTES: usize = 4096;

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;

/// Opening a pipe or a terminal returns at once instead of waiting for its other end.
#[expect(clippy::cast_possible_wrap, reason = "the flags of open(2) are an int")]
const NO_WAITING: i32 =
    rustix::fs::OFlags::NONBLOCK.union(rustix::fs::OFlags::NOCTTY).bits() as i32;

/// What is only looked at is not opened for reading, where there is such a way.
#[cfg(target_os = "linux")]
#[expect(clippy::cast_possible_wrap, reason = "the flags of open(2) are an int")]
const ONLY_LOOKING: i32 = rustix::fs::OFlags::PATH.bits() as i32;
#[cfg(not(target_os = "linux"))]
const ONLY_LOOKING: i32 = NO_WAITING;

#[cfg(test)]
mod tests;
