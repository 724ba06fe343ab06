//! Files that run later, kept as they were while a confined program runs.
//!
//! A program may write its project, and some files there are used later without a sandbox: hooks and settings of
//! the repository, the configuration of this program, files of servers and agents. Bubblewrap makes those that are
//! there read-only; Landlock cannot, and neither keeps a program from making new ones. So they are looked at before
//! and after each program. A change is put back, kept aside in the state directory, and told with the line that
//! accepts it. Other files that tools run later are told and left as they are.
//!
//! Everything is opened below the directory that the program may write, so that a link which the program leaves
//! there leads nowhere else. Programs that run at the same time are not told apart, and neither is a user who edits
//! such a file meanwhile: that change is put back and kept aside too.

mod git_config;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use convoke_core::ToolError;
use convoke_tool::{Process, Program, ReachedLimit, Spawner, Streams};

use crate::protect;

/// How many bytes of a file are kept to be put back. A longer one is told and left.
const MOST_BYTES: u64 = 4 * 1024 * 1024;
/// How many files below one directory are looked at.
const MOST_FILES: usize = 512;
/// How deep directories are looked at.
const DEEPEST: usize = 4;
/// How long the processes of a program that was stopped may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The files to look at, and where changes are kept.
#[derive(Debug)]
pub(crate) struct LaterFiles {
    roots: Vec<PathBuf>,
    /// What is put back, below its root.
    kept: Vec<PathBuf>,
    /// What is told only, below its root.
    told: Vec<PathBuf>,
    aside: Option<PathBuf>,
}

/// What was found, by root and path below it.
type Found = BTreeMap<(usize, PathBuf), Content>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(PathBuf),
    /// Too long to be kept: its length, and when it was changed.
    Long(u64, i64, i64),
}

impl LaterFiles {
    /// Says what to look at below these directories. Changes are kept aside in a directory of their own.
    pub(crate) fn new(roots: &[PathBuf], servers: &[PathBuf], aside: Option<PathBuf>) -> Self {
        let below = |path: &PathBuf| {
            roots.iter().find_map(|root| path.strip_prefix(root).ok()).map(Path::to_owned)
        };
        let usual = protect::from_programs(roots, servers);
        let mut kept: BTreeSet<PathBuf> = usual.iter().filter_map(below).collect();
        kept.extend([".convoke", ".git/config.worktree", ".git/commondir"].map(PathBuf::from));
        let told = protect::places().filter(|path| !kept.iter().any(|kept| path.starts_with(kept)));
        Self {
            roots: roots.to_vec(),
            told: told.collect(),
            kept: kept.into_iter().collect(),
            aside,
        }
    }

    fn look(&self, places: &[PathBuf]) -> Found {
        let mut found = Found::new();
        for (number, root) in self.roots.iter().enumerate() {
            let Ok(directory) = Dir::open_ambient_dir(root, ambient_authority()) else { continue };
            // In a worktree this is a file that says where the repository is.
            if let Some(content) = content(&directory, Path::new(".git")) {
                found.insert((number, PathBuf::from(".git")), content);
            }
            for place in places {
                let mut left = MOST_FILES;
                collect(&directory, place, DEEPEST, &mut left, &mut |path, content| {
                    found.insert((number, path), content);
                });
            }
        }
        found
    }

    /// Compares the files with their earlier state, restores the protected ones, and returns the notices.
    fn settle(&self, kept: &Found, told: &Found) -> Vec<String> {
        let now = self.look(&self.kept);
        let changed: BTreeSet<_> =
            kept.keys().chain(now.keys()).filter(|key| kept.get(key) != now.get(key)).collect();
        let mut notices = Vec::new();
        // What is new goes first: it may stand in the place of a directory.
        let (new, other): (Vec<_>, Vec<_>) =
            changed.into_iter().partition(|key| !kept.contains_key(key));
        for key in new.into_iter().chain(other) {
            notices.extend(self.judge(key, kept.get(key), now.get(key)));
        }
        let later = self.look(&self.told);
        for key in told.keys().chain(later.keys()).collect::<BTreeSet<_>>() {
            if told.get(key) != later.get(key)
                && !self.kept.contains(&key.1)
                && key.1 != Path::new(".git")
            {
                let path = self.path(key);
                notices.push(format!(
                    "`{path}` was changed; programs may run it later without the sandbox"
                ));
            }
        }
        notices
    }

    fn path(&self, (root, path): &(usize, PathBuf)) -> String {
        self.roots
            .get(*root)
            .map_or_else(|| path.clone(), |root| root.join(path))
            .display()
            .to_string()
    }

    fn judge(
        &self,
        key: &(usize, PathBuf),
        before: Option<&Content>,
        now: Option<&Content>,
    ) -> Option<String> {
        let is_config = key.1 == Path::new(".git/config");
        if let (true, Some(Content::File { bytes: now, .. })) = (is_config, now) {
            let before = match before {
                None => Some(&[][..]),
                Some(Content::File { bytes, .. }) => Some(bytes.as_slice()),
                Some(_) => None,
            };
            if before.is_some_and(|before| git_config::is_harmless_change(before, now)) {
                return None;
            }
        }
        let path = self.path(key);
        let root = self.roots.get(key.0)?;
        let directory = Dir::open_ambient_dir(root, ambient_authority()).ok()?;
        let in_git = key.1.starts_with(".git") && key.1 != Path::new(".git");
        if now.is_none()
            && in_git
            && !directory.symlink_metadata(".git").is_ok_and(|it| it.is_dir())
        {
            // The whole repository is gone: half of one would help nobody.
            return None;
        }
        let aside = now.and_then(|now| self.keep_aside(&key.1, now).ok().flatten());
        let mut said = format!("`{path}` decides what runs later without the sandbox");
        match put_back(&directory, &key.1, before) {
            Ok(()) if now.is_none() => {
                said.push_str(": the command removed it, and it was put back");
            }
            Ok(()) if before.is_none() => {
                said.push_str(": the command made it, and it was taken away");
            }
            Ok(()) => said.push_str(": the command changed it, and it was put back as it was"),
            Err(error) => {
                write!(said, ": the command changed it, and it cannot be put back: {error}")
                    .ok()?;
            }
        }
        match (aside, now) {
            (Some(kept), _) => {
                let (from, to) = (quoted(&kept.display().to_string()), quoted(&path));
                write!(said, ". The change is kept; the user accepts it with: cp {from} {to}")
                    .ok()?;
            }
            (None, Some(_)) => said.push_str(". The change could not be kept"),
            (None, None) => {}
        }
        Some(said)
    }

    /// Writes changed content where neither tools nor programs reach it.
    fn keep_aside(&self, path: &Path, content: &Content) -> io::Result<Option<PathBuf>> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let Some(aside) = &self.aside else { return Ok(None) };
        let owner_alone = |directory: &mut std::fs::DirBuilder| {
            std::os::unix::fs::DirBuilderExt::mode(directory, 0o700);
        };
        let mut builder = std::fs::DirBuilder::new();
        owner_alone(&mut builder);
        builder.recursive(true).create(aside)?;
        builder.recursive(false);
        let own = loop {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let own = aside.join(format!("{}-{number}", std::process::id()));
            match builder.create(&own) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => break made.map(|()| own)?,
            }
        };
        let directory = Dir::open_ambient_dir(&own, ambient_authority())?;
        let name = path.file_name().map_or_else(|| Path::new("file"), Path::new);
        let bytes = match content {
            Content::File { bytes, .. } => bytes.clone(),
            Content::Link(target) => format!("a link to {}\n", target.display()).into_bytes(),
            Content::Long(length, ..) => format!("a file of {length} bytes\n").into_bytes(),
        };
        directory.write(name, bytes)?;
        directory.set_permissions(name, Permissions::from_mode(0o600))?;
        Ok(Some(own.join(name)))
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns what is at a path, if it is a file or a link.
fn content(directory: &Dir, path: &Path) -> Option<Content> {
    let found = directory.symlink_metadata(path).ok()?;
    if found.is_symlink() {
        return Some(Content::Link(directory.read_link_contents(path).unwrap_or_default()));
    }
    if !found.is_file() {
        return None;
    }
    let long = Content::Long(found.len(), found.mtime(), found.mtime_nsec());
    if found.len() > MOST_BYTES {
        return Some(long);
    }
    let mode = found.permissions().mode() & 0o7777;
    Some(directory.read(path).map_or(long, |bytes| Content::File { bytes, mode }))
}

/// Passes on all files and links at a path and below. Examples of hooks are none: Git never runs them.
fn collect(
    directory: &Dir,
    path: &Path,
    deeper: usize,
    left: &mut usize,
    found: &mut dyn FnMut(PathBuf, Content),
) {
    if *left == 0 || path.extension().is_some_and(|extension| extension == "sample") {
        return;
    }
    *left -= 1;
    if let Some(content) = content(directory, path) {
        return found(path.to_owned(), content);
    }
    let is_directory = directory.symlink_metadata(path).is_ok_and(|it| it.is_dir());
    let Some(deeper) = deeper.checked_sub(1).filter(|_| is_directory) else { return };
    let entries = directory.read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names {
        collect(directory, &path.join(name), deeper, left, found);
    }
}

/// Makes a path what it was before: nothing, a link or a file.
fn put_back(directory: &Dir, path: &Path, before: Option<&Content>) -> io::Result<()> {
    let remove = || match directory.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    match before {
        None => remove(),
        Some(Content::Long(..)) => Err(io::Error::other("it is too long")),
        Some(Content::Link(target)) => {
            remove()?;
            directory.symlink_contents(target, path)
        }
        Some(Content::File { bytes, mode }) => {
            if let Some(above) = path.parent() {
                directory.create_dir_all(above)?;
            }
            // A directory may have been made in its place.
            if directory.symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
                directory.remove_dir_all(path)?;
            }
            remove()?;
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(*mode);
            io::Write::write_all(&mut directory.open_with(path, &options)?, bytes)?;
            directory.set_permissions(path, Permissions::from_mode(*mode))
        }
    }
}

/// Starts programs as another spawner does, and looks at files that run later before and after each.
#[derive(Debug)]
pub(crate) struct WatchingSpawner {
    inner: Arc<dyn Spawner>,
    files: Arc<LaterFiles>,
}

impl WatchingSpawner {
    pub(crate) fn new(inner: Arc<dyn Spawner>, files: LaterFiles) -> Self {
        Self { inner, files: Arc::new(files) }
    }
}

#[async_trait]
impl Spawner for WatchingSpawner {
    async fn spawn(&self, program: Program) -> Result<Box<dyn Process>, ToolError> {
        let files = Arc::clone(&self.files);
        let looked = move || (files.look(&files.kept), files.look(&files.told));
        let before = tokio::task::spawn_blocking(looked).await.map_err(|error| {
            ToolError::failed("files that run later cannot be looked at").caused_by(&error)
        })?;
        let inner = self.inner.spawn(program).await?;
        Ok(Box::new(WatchedProcess { inner, files: Arc::clone(&self.files), before: Some(before) }))
    }
}

#[derive(Debug)]
struct WatchedProcess {
    inner: Box<dyn Process>,
    files: Arc<LaterFiles>,
    /// What was found before; nothing once it was compared.
    before: Option<(Found, Found)>,
}

#[async_trait]
impl Process for WatchedProcess {
    fn take_streams(&mut self) -> Option<Streams> {
        self.inner.take_streams()
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.inner.wait().await
    }

    fn reached(&self) -> Option<ReachedLimit> {
        self.inner.reached()
    }

    fn terminate(&mut self) {
        self.inner.terminate();
    }

    fn kill(&mut self) {
        self.inner.kill();
    }

    async fn settle(&mut self) -> Vec<String> {
        self.inner.kill();
        // Processes that are still ending could write once more.
        drop(tokio::time::timeout(PATIENCE, self.inner.wait()).await);
        let mut notices = self.inner.settle().await;
        if let Some((kept, told)) = self.before.take() {
            let files = Arc::clone(&self.files);
            let settled = tokio::task::spawn_blocking(move || files.settle(&kept, &told)).await;
            notices.extend(settled.unwrap_or_default());
        }
        notices
    }
}

impl Drop for WatchedProcess {
    /// A process that nobody waits for is ended, and its changes are put back all the same.
    fn drop(&mut self) {
        if let Some((kept, told)) = self.before.take() {
            self.inner.kill();
            self.files.settle(&kept, &told);
        }
    }
}
