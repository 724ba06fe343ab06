//! Workspaces: where a run works, and what becomes of what it changed there.
//!
//! A run with files of its own works in a git worktree or in a copy. Nothing of it reaches the user's files
//! until somebody asks for that: [`Workspace::apply`]. What the run began with is kept where its programs
//! cannot write, so what it changed is found out from that alone, whatever it did to its own files.
//!
//! Everything about one workspace lies beside each other, named after its run:
//!
//! | name | what it is |
//! | --- | --- |
//! | `ID` | the files the run works with |
//! | `ID.json` | what is known about it; locked while somebody works with it |
//! | `ID.index` | what git knows about the files as they were (worktree) |
//! | `ID.base` | the files as they were (copy) |
//! | `ID.diff` | what was changed, as it was last looked at |
//! | `ID.since` | what is applied to files that something was applied to before, while it is |
//! | `ID.tmp` | for temporary files, where the usual directory must not be written |
//!
//! | module | owns |
//! | --- | --- |
//! | `place` | where a run works, and telling what it changed there |
//! | `known` | what is kept about a workspace |
//! | `changes` | what was changed |
//! | `git` | starting git, so that nothing of a repository runs with it |
//! | `worktree` | worktrees: making, comparing, applying |
//! | `copy` | copies: making, comparing, applying |
//! | `room` | whether there is room for files where changes are applied |
//! | `diff` | texts of differences, and bounded ones |

mod changes;
mod copy;
mod diff;
mod error;
mod git;
mod known;
mod place;
mod room;
mod worktree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, MetadataExt, OpenOptions, OpenOptionsExt};
use convoke_core::file_kind::not_a_file;
use convoke_core::{RunId, WorkspaceKind};
use convoke_sandbox::secrets_of;
use convoke_tool::RealPlaces;

pub use self::changes::{Apply, Changes};
pub use self::copy::CopyLimits;
pub use self::error::WorkspaceError;
use self::git::{Git, Rights};
use self::known::{Known, Repository, save};
pub use self::place::Workspace;
use crate::config::SandboxConfig;

/// The endings of what belongs to a workspace, its files themselves first.
const PARTS: &[&str] = &[
    "",
    ".base",
    ".index",
    ".index.lock",
    ".work-index",
    ".work-index.lock",
    ".diff",
    ".since",
    ".tmp",
    ".json",
];
/// How many names are told.
const MOST_NAMES: usize = 5;

/// Where workspaces are kept, and how they are made. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workspaces {
    directory: PathBuf,
    variables: BTreeMap<String, String>,
    home: Option<PathBuf>,
    sandbox: SandboxConfig,
    limits: CopyLimits,
    /// What is kept from whoever works in one, where it lies in the files of the user.
    kept_back: Vec<PathBuf>,
}

impl Workspaces {
    /// Keeps workspaces in this directory, which is made when it is needed. Programs must be able to see
    /// it, so it cannot lie below what is hidden from them.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            variables: BTreeMap::new(),
            home: None,
            sandbox: SandboxConfig::default(),
            limits: CopyLimits::default(),
            kept_back: Vec::new(),
        }
    }

    /// Finds git, and what the user told it, through these variables.
    #[must_use]
    pub fn environment(mut self, variables: BTreeMap<String, String>) -> Self {
        self.variables = variables;
        self
    }

    /// Says where the user's home directory is: git cannot see the credentials there.
    #[must_use]
    pub fn home(mut self, home: Option<PathBuf>) -> Self {
        self.home = home;
        self
    }

    /// Confines git as these settings say.
    #[must_use]
    pub fn sandbox(mut self, sandbox: SandboxConfig) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Copies no more than this.
    #[must_use]
    pub const fn limits(mut self, limits: CopyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Keeps these paths back: what lies there is not copied, and of what git does not know yet, not carried
    /// over. What is committed is in the files of a worktree all the same.
    #[must_use]
    pub fn keep_back(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.kept_back.extend(paths);
        self
    }

    /// Returns what is kept back below a directory, as paths from there.
    fn kept_back_below(&self, root: &Path) -> Vec<PathBuf> {
        let all = self.kept_back.iter().chain(&self.sandbox.hidden).cloned();
        let all = all.chain(secrets_of(self.home.as_deref()));
        let mut places = RealPlaces::default();
        let spelled = all.flat_map(|path| [places.of(&path), path]);
        let below = spelled.filter_map(|path| path.strip_prefix(root).ok().map(Path::to_owned));
        below.filter(|path| !path.as_os_str().is_empty()).collect()
    }

    /// Returns where they are kept.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes a workspace for a run that is started in this directory.
    pub async fn prepare(
        &self,
        kind: WorkspaceKind,
        run: &RunId,
        start: &Path,
    ) -> Result<Workspace, WorkspaceError> {
        let start =
            start.canonicalize().map_err(WorkspaceError::files(start.to_owned(), "used"))?;
        if !kind.is_own() {
            let temporary = self.directory.join(part(run, ".tmp"));
            return Ok(Workspace::of_the_user(kind, start, Some(temporary)));
        }
        let store = self.open_directory()?;
        let lock = self.lock(&store, run)?;
        let made = match kind {
            WorkspaceKind::Worktree => worktree::prepare(self, run, &start, &store).await,
            _ => copy::prepare(self, run, &start, &store).await,
        };
        match made {
            Ok(known) => {
                let known = Known { complete: true, ..known };
                save(self, &store, run, &known)?;
                Ok(Workspace::own(self, run, start, known, lock))
            }
            Err(error) => {
                // What was made until then is of no use to anybody.
                let known = self.known(run).ok().map(|(_, known)| known);
                self.clear(&store, run, known.as_ref()).await.ok();
                Err(error)
            }
        }
    }

    /// Opens the workspace of a run.
    pub fn open(&self, run: &RunId) -> Result<Workspace, WorkspaceError> {
        let (store, known) = self.known(run)?;
        let lock = self.lock(&store, run)?;
        let path = known.tree.clone();
        if !path.is_dir() {
            return Err(WorkspaceError::Gone { run: run.clone(), path });
        }
        let start = below(&known.source, &known.within);
        Ok(Workspace::own(self, run, start, known, lock))
    }

    /// Tells whether there is something of a workspace of this run.
    pub fn has(&self, run: &RunId) -> bool {
        PARTS.iter().any(|ending| self.directory.join(part(run, ending)).symlink_metadata().is_ok())
    }

    /// Tells whether there is a workspace of this run that was made to its end.
    pub(crate) fn is_complete(&self, run: &RunId) -> bool {
        self.known(run).is_ok_and(|(_, known)| known.complete)
    }

    /// Says why no worktree can be made of a directory, if none can.
    pub async fn check(&self, start: &Path) -> Result<(), WorkspaceError> {
        worktree::check(self, start).await
    }

    /// Tells whether the workspace of a run is needed: there is something in it that is nowhere else, or in
    /// one that was made of it. One that was not made to its end holds nothing.
    pub async fn is_needed(&self, run: &RunId) -> Result<bool, WorkspaceError> {
        match self.finished(run)? {
            Some(workspace) => workspace.is_needed().await,
            None => Ok(false),
        }
    }

    /// Tells whether there is something in the workspace of a run that is nowhere else.
    pub async fn holds_changes(&self, run: &RunId) -> Result<bool, WorkspaceError> {
        match self.finished(run)? {
            Some(workspace) => workspace.holds_changes().await,
            None => Ok(false),
        }
    }

    /// Opens the workspace of a run if it was made to its end.
    fn finished(&self, run: &RunId) -> Result<Option<Workspace>, WorkspaceError> {
        if !self.has(run) {
            return Ok(None);
        }
        let known = self.known(run).map(|(_, known)| known);
        match known {
            Ok(known) if known.complete && known.tree.is_dir() => self.open(run).map(Some),
            _ => {
                let store = self.open_directory()?;
                self.lock(&store, run).map(|_| None)
            }
        }
    }

    /// Tells whether one of the workspaces that were made of these files is needed. One that is in use is.
    async fn is_needed_below(&self, files: &Path) -> Result<bool, WorkspaceError> {
        let real = files.canonicalize().unwrap_or_else(|_| files.to_owned());
        for run in self.list()? {
            let is_below = |(_, known): (Dir, Known)| {
                known.source.starts_with(files) || known.source.starts_with(&real)
            };
            if !self.known(&run).is_ok_and(is_below) {
                continue;
            }
            match Box::pin(self.is_needed(&run)).await {
                Ok(false) => {}
                Ok(true) | Err(WorkspaceError::InUse { .. }) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Lists the runs of which there is something, in order.
    pub fn list(&self) -> Result<Vec<RunId>, WorkspaceError> {
        let cannot = || WorkspaceError::files(&self.directory, "read");
        let entries = match Dir::open_ambient_dir(&self.directory, ambient_authority()) {
            Ok(store) => store.entries().map_err(cannot())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(cannot()(error)),
        };
        let mut runs = BTreeSet::new();
        for entry in entries {
            let name = entry.map_err(cannot())?.file_name();
            let name = name.to_string_lossy();
            runs.insert(name.split('.').next().unwrap_or_default().to_owned());
        }
        Ok(runs.into_iter().filter(|run| !run.is_empty()).map(RunId::new).collect())
    }

    /// Removes everything of the workspace of a run, its branch included. Somebody who works with it is
    /// not disturbed.
    pub async fn remove(&self, run: &RunId) -> Result<(), WorkspaceError> {
        if !self.has(run) {
            return Ok(());
        }
        let store = self.open_directory()?;
        let lock = self.lock(&store, run)?;
        let known = self.known(run).ok().map(|(_, known)| known);
        self.clear(&store, run, known.as_ref()).await?;
        drop(lock);
        Ok(())
    }

    async fn clear(
        &self,
        store: &Dir,
        run: &RunId,
        known: Option<&Known>,
    ) -> Result<(), WorkspaceError> {
        if let Some(repository) = known.and_then(|known| known.repository.as_ref()) {
            worktree::forget(self, repository).await?;
        }
        for ending in PARTS {
            let name = part(run, ending);
            let removed = match store.symlink_metadata(&name) {
                Ok(metadata) if metadata.is_dir() => copy::remove_directory(store, &name),
                Ok(_) => store.remove_file(&name),
                Err(_) => Ok(()),
            };
            removed.map_err(WorkspaceError::files(self.directory.join(&name), "removed"))?;
        }
        Ok(())
    }

    fn known(&self, run: &RunId) -> Result<(Dir, Known), WorkspaceError> {
        let name = part(run, ".json");
        let path = self.directory.join(part(run, ""));
        let gone = || WorkspaceError::Gone { run: run.clone(), path: path.clone() };
        let store = Dir::open_ambient_dir(&self.directory, ambient_authority());
        let store = store.map_err(|_| gone())?;
        let metadata = store.metadata(&name).map_err(|_| gone())?;
        if let Some(why) = not_a_file(metadata.mode()) {
            return Err(WorkspaceError::Unreadable { run: run.clone(), why });
        }
        let text = store.read_to_string(&name).map_err(|_| gone())?;
        let known = serde_json::from_str(&text).map_err(|error| WorkspaceError::Unreadable {
            run: run.clone(),
            why: error.to_string(),
        })?;
        Ok((store, known))
    }

    fn open_directory(&self) -> Result<Dir, WorkspaceError> {
        let made = std::fs::create_dir_all(&self.directory);
        made.map_err(WorkspaceError::files(&self.directory, "made"))?;
        Dir::open_ambient_dir(&self.directory, ambient_authority())
            .map_err(WorkspaceError::files(&self.directory, "opened"))
    }

    /// Nobody else works with it as long as the file is held.
    fn lock(&self, store: &Dir, run: &RunId) -> Result<Lock, WorkspaceError> {
        let name = part(run, ".json");
        let path = self.directory.join(&name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        let file = store.open_with(&name, &options);
        let file = file.map_err(WorkspaceError::files(&path, "opened"))?.into_std();
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(WorkspaceError::InUse { run: run.clone() }),
            Err(TryLockError::Error(error)) => Err(WorkspaceError::files(path, "locked")(error)),
        }
    }

    /// Starts git with these rights.
    fn git(&self, rights: Rights, at: &Path) -> Result<Git, WorkspaceError> {
        Git::new(&self.sandbox, &self.variables, self.home.as_deref(), rights, at)
    }
}

/// The right to work with a workspace.
#[derive(Debug)]
struct Lock(std::fs::File);

/// A program that is being started holds the file too, for a moment; the lock does not wait for it.
impl Drop for Lock {
    fn drop(&mut self) {
        self.0.unlock().ok();
    }
}

/// Returns the name of a part of a workspace.
fn part(run: &RunId, ending: &str) -> String {
    format!("{run}{ending}")
}

/// Names the first few, and says how many there are beside.
fn told(what: &str, names: &[String]) -> Option<String> {
    let shown = names.get(..MOST_NAMES).unwrap_or(names).join(", ");
    let more = match names.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| format!("{what}: {shown}{more}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Without a slash at the end, where nothing follows.
fn below(root: &Path, within: &Path) -> PathBuf {
    if within.as_os_str().is_empty() { root.to_owned() } else { root.join(within) }
}

/// Makes a directory that only its owner may look into.
fn make_private(store: &Dir, name: &str) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    store.create_dir_with(name, &builder)
}
