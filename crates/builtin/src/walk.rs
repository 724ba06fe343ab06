//! Walks a directory tree, in parallel, without ever leaving it.
//!
//! Each directory is opened by its name *relative to its parent's handle* and never through a link, so
//! a tree that is changed under the walk can make it miss something but not see anything outside. That
//! also makes it fast: the kernel resolves one name instead of a path.
//!
//! A directory that cannot be read does not end the walk, but it is counted: whoever walks has to say
//! that something may be missing. The same holds for what the policy keeps from the call.
//!
//! `.gitignore` and `.ignore` files count from the walk's root down, in a repository or not; what lies
//! above the root is not read. Version control's own directories are left out, hidden files are not. What
//! the roots hide from tools is left out too, and counted like what cannot be read.

mod rules;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use convoke_core::ToolError;
use convoke_tool::{Place, ToolContext};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use rules::Rules;

const VERSION_CONTROL: [&[u8]; 4] = [b".git", b".hg", b".svn", b".jj"];
/// Deeper trees are cut off there; nobody makes them but to do harm.
const MAX_DEPTH: usize = 256;
/// While a directory is listed, so many names are taken before it is asked whether to stop.
const ASK_AFTER: usize = 1024;

/// Whether ignore files count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignore {
    /// They do, and version control's directories are left out.
    Respect,
    /// Everything is shown.
    Nothing,
}

/// How far a walk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What is in the start itself.
    One,
    /// Everything below it.
    All,
}

/// What a visitor wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// To go on, into this directory too if it is one.
    GoOn,
    /// To go on, but not into this directory.
    PassOver,
}

/// Tells whether to end, though not all is done.
pub(crate) type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Something found on the way.
pub(crate) struct Found<'a> {
    parent: BorrowedFd<'a>,
    name: &'a CStr,
    /// Its path below the start of the walk.
    pub(crate) path: &'a Path,
    pub(crate) file_type: FileType,
}

impl Found<'_> {
    /// Opens it as a file, if that is what it still is.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(openat(self.parent, self.name, flags, Mode::empty())?)
    }

    /// Returns its metadata, of the link itself if it is one.
    pub(crate) fn stat(&self) -> io::Result<rustix::fs::Stat> {
        Ok(statat(self.parent, self.name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> &OsStr {
        OsStr::from_bytes(self.name.to_bytes())
    }
}

/// A walk that has not begun.
pub(crate) struct Walk {
    start: OwnedFd,
    rules: Option<Arc<Rules>>,
    ignore: Ignore,
    depth: Depth,
    /// Paths of ignore files are relative to their root; this is the start's path below it.
    prefix: PathBuf,
    /// What tools may not touch, as paths from the start.
    hidden: Vec<PathBuf>,
    forbidden: Option<Forbidden>,
}

/// What the policy keeps from whoever walks.
struct Forbidden {
    context: ToolContext,
    /// Where the walk starts, by all its names.
    starts: Vec<PathBuf>,
}

/// What a walk did not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missed {
    /// How many directories were not looked into, or not to their end, though they are there.
    pub(crate) unreadable: u64,
    /// How many files and directories the policy keeps back.
    pub(crate) forbidden: u64,
}

/// A directory that waits for its turn.
struct Waiting {
    parent: Option<Arc<Dir>>,
    name: Option<CString>,
    path: PathBuf,
    depth: usize,
    rules: Option<Arc<Rules>>,
}

impl Walk {
    /// Walks below a place, if it is a directory that can be listed.
    pub(crate) fn below(place: &Place, ignore: Ignore) -> Result<Self, ToolError> {
        let directory = OwnedFd::from(place.open_directory()?.into_std_file());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = openat(&directory, c".", flags, Mode::empty());
        let start = listed.map_err(|error| place.error(&error.into(), "list"))?;
        let hidden = place.hidden_below(start.as_fd())?;
        Ok(Self { hidden, ..Self::new(start, ignore) })
    }

    /// Walks below an open directory.
    fn new(start: OwnedFd, ignore: Ignore) -> Self {
        let (depth, prefix, hidden) = (Depth::All, PathBuf::new(), Vec::new());
        Self { start, rules: None, ignore, depth, prefix, hidden, forbidden: None }
    }

    /// Leaves out what the policy keeps from this call, and does not go into it. `place` is the start.
    pub(crate) fn for_call(mut self, place: &Place, context: &ToolContext) -> Self {
        if context.forbids_any() {
            let starts = vec![place.absolute(), place.resolved()];
            self.forbidden = Some(Forbidden { context: context.clone(), starts });
        }
        self
    }

    /// Goes this far.
    pub(crate) const fn depth(mut self, depth: Depth) -> Self {
        self.depth = depth;
        self
    }

    /// Lets the ignore files between `root` and the start count too; `below` leads from one to the other.
    pub(crate) fn with_rules_from(mut self, root: BorrowedFd<'_>, below: &Path) -> Self {
        if self.ignore == Ignore::Respect {
            self.rules = Rules::along(root, below);
            self.prefix = below.to_path_buf();
        }
        self
    }

    /// Visits everything below the start, in no particular order, until `stop` says so. Each thread
    /// gets a visitor of its own. Returns what was not shown.
    pub(crate) fn run<V>(
        self,
        threads: usize,
        stop: Stop<'_>,
        visitors: impl Fn() -> V + Sync,
    ) -> Missed
    where
        V: FnMut(&Found<'_>) -> Next,
    {
        let queue = Queue::new(Waiting {
            parent: None,
            name: None,
            path: PathBuf::new(),
            depth: 0,
            rules: self.rules.clone(),
        });
        let worker = || {
            let mut visit = visitors();
            while let Some(waiting) = queue.next() {
                let _busy = Busy(&queue);
                if self.directory(waiting, &queue, stop, &mut visit).is_break() {
                    queue.stop();
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(worker);
            }
            worker();
        });
        queue.missed()
    }

    fn directory<V>(
        &self,
        waiting: Waiting,
        queue: &Queue,
        stop: Stop<'_>,
        visit: &mut V,
    ) -> ControlFlow<()>
    where
        V: FnMut(&Found<'_>) -> Next,
    {
        let mut directory = match self.open(&waiting) {
            Ok(directory) => directory,
            Err(error) => return queue.pass_over(error),
        };
        let Entries { entries, has_rules } = Entries::read(&mut directory, queue, stop)?;
        let directory = Arc::new(directory);
        let handle = match directory.fd() {
            Ok(handle) => handle,
            Err(error) => return queue.pass_over(error),
        };
        let mut rules = waiting.rules;
        if has_rules && self.ignore == Ignore::Respect {
            rules = Rules::in_directory(handle, &self.prefix.join(&waiting.path), rules);
        }
        let mut path = waiting.path;
        for (name, file_type) in entries {
            path.push(OsStr::from_bytes(name.to_bytes()));
            let found = Found {
                parent: handle,
                name: &name,
                path: &path,
                file_type: known(handle, &name, file_type),
            };
            let ignored = self.leaves_out(&found, rules.as_deref());
            if self.hidden.iter().any(|hidden| hidden == found.path) {
                queue.lock().missed.unreadable += 1;
            } else if !ignored && self.is_forbidden(&found) {
                queue.keep_back();
            } else if !ignored {
                if stop() {
                    return ControlFlow::Break(());
                }
                if visit(&found) == Next::GoOn && self.descends(&found) {
                    queue.add(Waiting {
                        parent: Some(Arc::clone(&directory)),
                        path: path.clone(),
                        depth: waiting.depth + 1,
                        rules: rules.clone(),
                        name: Some(name),
                    });
                }
            }
            path.pop();
        }
        ControlFlow::Continue(())
    }

    fn open(&self, waiting: &Waiting) -> rustix::io::Result<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match (&waiting.parent, &waiting.name) {
            (Some(parent), Some(name)) => openat(parent.fd()?, name, flags, Mode::empty())?,
            _ => openat(self.start.as_fd(), c".", flags, Mode::empty())?,
        };
        Dir::new(directory)
    }

    fn is_forbidden(&self, found: &Found<'_>) -> bool {
        self.forbidden.as_ref().is_some_and(|forbidden| {
            let mut starts = forbidden.starts.iter();
            starts.any(|start| forbidden.context.forbids(&start.join(found.path)))
        })
    }

    fn descends(&self, found: &Found<'_>) -> bool {
        found.file_type == FileType::Directory && self.depth == Depth::All
    }

    fn leaves_out(&self, found: &Found<'_>, rules: Option<&Rules>) -> bool {
        if self.ignore == Ignore::Nothing {
            return false;
        }
        let is_directory = found.file_type == FileType::Directory;
        if is_directory && VERSION_CONTROL.contains(&found.name.to_bytes()) {
            return true;
        }
        let Some(rules) = rules else { return false };
        if self.prefix.as_os_str().is_empty() {
            rules.ignores(found.path, is_directory)
        } else {
            rules.ignores(&self.prefix.join(found.path), is_directory)
        }
    }
}

/// What a directory holds.
struct Entries {
    entries: Vec<(CString, FileType)>,
    has_rules: bool,
}

impl Entries {
    /// Lists a directory as far as that goes. A very long one is not listed to its end once `stop`
    /// says so.
    fn read(directory: &mut Dir, queue: &Queue, stop: Stop<'_>) -> ControlFlow<(), Self> {
        let mut listed = Self { entries: Vec::new(), has_rules: false };
        while let Some(entry) = directory.read() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    queue.pass_over(error)?;
                    break;
                }
            };
            listed.add(entry.file_name(), entry.file_type());
            if listed.entries.len() % ASK_AFTER == ASK_AFTER - 1 && stop() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(listed)
    }

    fn add(&mut self, name: &CStr, file_type: FileType) {
        match name.to_bytes() {
            b"." | b".." => return,
            b".gitignore" | b".ignore" => self.has_rules = true,
            _ => {}
        }
        self.entries.push((name.to_owned(), file_type));
    }
}

/// Some file systems do not say in a listing what an entry is.
fn known(parent: BorrowedFd<'_>, name: &CStr, file_type: FileType) -> FileType {
    if file_type != FileType::Unknown {
        return file_type;
    }
    let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

/// The directories that wait. The last one in is the first one out, which keeps few handles open.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: Vec<Waiting>,
    busy: usize,
    stopped: bool,
    missed: Missed,
}

/// One directory under way. However its visit ends, the other threads are told, or they would wait
/// for it for ever.
struct Busy<'a>(&'a Queue);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
        self.0.done();
    }
}

impl Queue {
    fn new(first: Waiting) -> Self {
        let state =
            State { waiting: vec![first], busy: 0, stopped: false, missed: Missed::default() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds a directory, unless it lies too deep.
    fn add(&self, waiting: Waiting) {
        let mut state = self.lock();
        if waiting.depth > MAX_DEPTH {
            state.missed.unreadable += 1;
            return;
        }
        state.waiting.push(waiting);
        drop(state);
        self.changed.notify_one();
    }

    /// Passes over a directory that cannot be read. One that is gone, or something else by now, was
    /// changed under the walk and does not count.
    fn pass_over(&self, error: Errno) -> ControlFlow<()> {
        if !matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) {
            self.lock().missed.unreadable += 1;
        }
        ControlFlow::Continue(())
    }

    /// Returns the next directory, or nothing when all is done.
    fn next(&self) -> Option<Waiting> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(waiting) = state.waiting.pop() {
                state.busy += 1;
                return Some(waiting);
            }
            if state.busy == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self) {
        let mut state = self.lock();
        state.busy -= 1;
        if state.busy == 0 && state.waiting.is_empty() {
            self.changed.notify_all();
        }
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Counts something that the policy keeps back.
    fn keep_back(&self) {
        self.lock().missed.forbidden += 1;
    }

    fn missed(&self) -> Missed {
        self.lock().missed
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns how many threads a walk should use.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8)
}
