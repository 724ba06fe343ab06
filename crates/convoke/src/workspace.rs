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
//! | `ID.tmp` | for temporary files, where the usual directory must not be written |
//!
//! | module | owns |
//! | --- | --- |
//! | `git` | starting git, so that nothing of a repository runs with it |
//! | `worktree` | worktrees: making, comparing, applying |
//! | `copy` | copies: making, comparing, applying |
//! | `diff` | texts of differences, and bounded ones |

mod copy;
mod diff;
mod error;
mod git;
mod worktree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt};
use convoke_agent::Workplace;
use convoke_core::{RunId, WorkspaceKind, WorkspacePlace, WorkspaceReport};
use convoke_sandbox::secrets_of;
use convoke_tool::RealPlaces;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use self::copy::CopyLimits;
pub use self::error::WorkspaceError;
use self::git::{Git, Rights};
use crate::config::SandboxConfig;

/// The endings of what belongs to a workspace, its files themselves first.
const PARTS: &[&str] = &["", ".base", ".index", ".work-index", ".diff", ".tmp", ".json"];

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

    /// Tells whether there is something in the workspace of a run that is nowhere else. One that was not
    /// made to its end holds nothing.
    pub async fn is_needed(&self, run: &RunId) -> Result<bool, WorkspaceError> {
        if !self.has(run) {
            return Ok(false);
        }
        let known = self.known(run).map(|(_, known)| known);
        match known {
            Ok(known) if known.complete && known.tree.is_dir() => self.open(run)?.is_needed().await,
            _ => {
                let store = self.open_directory()?;
                self.lock(&store, run).map(|_| false)
            }
        }
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Without a slash at the end, where nothing follows.
fn below(root: &Path, within: &Path) -> PathBuf {
    if within.as_os_str().is_empty() { root.to_owned() } else { root.join(within) }
}

/// Written into the file that is locked, not in place of it: who waits for the lock holds that file.
fn save(
    workspaces: &Workspaces,
    store: &Dir,
    run: &RunId,
    known: &Known,
) -> Result<(), WorkspaceError> {
    let name = part(run, ".json");
    let text = serde_json::to_string_pretty(known).map_err(io::Error::other);
    text.and_then(|text| store.write(&name, text))
        .map_err(WorkspaceError::files(workspaces.directory.join(name), "written"))
}

/// Makes a directory that only its owner may look into.
fn make_private(store: &Dir, name: &str) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    store.create_dir_with(name, &builder)
}

/// What is known about a workspace with files of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    kind: WorkspaceKind,
    /// The root of what it was made of.
    source: PathBuf,
    /// Its own root.
    tree: PathBuf,
    /// The directory to work in, below both.
    within: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repository: Option<Repository>,
    #[serde(default)]
    notes: Vec<String>,
    /// Whether it was made to its end.
    #[serde(default)]
    complete: bool,
    /// What of it was applied, as the hash of a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    applied: Option<String>,
}

/// What is known about the repository of a worktree.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Repository {
    /// Its directory, as git uses it where the run was started.
    git_directory: PathBuf,
    /// What all its worktrees share.
    common: PathBuf,
    /// What it knows about this worktree.
    admin: PathBuf,
    branch: String,
    base: String,
    /// What the files say that lead from the worktree to the repository and back.
    links: Vec<(PathBuf, String)>,
}

/// Where a run works. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workspace(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kind: WorkspaceKind,
    start: PathBuf,
    /// Where its programs may put temporary files, if there is such a place.
    temporary: Option<PathBuf>,
    own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    workspaces: Workspaces,
    run: RunId,
    known: Known,
    /// Held as long as somebody works with it.
    _lock: Lock,
}

impl Workspace {
    /// Returns a directory of the user as a workspace in which nothing is changed. Its programs have no place
    /// of their own for temporary files.
    pub(crate) fn readonly(start: &Path) -> Self {
        Self::of_the_user(WorkspaceKind::Readonly, start.to_owned(), None)
    }

    fn of_the_user(kind: WorkspaceKind, start: PathBuf, temporary: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner { kind, start, temporary, own: None }))
    }

    fn own(workspaces: &Workspaces, run: &RunId, start: PathBuf, known: Known, lock: Lock) -> Self {
        let temporary = Some(workspaces.directory.join(part(run, ".tmp")));
        let kind = known.kind;
        let (workspaces, run) = (workspaces.clone(), run.clone());
        let own = Some(Own { workspaces, run, known, _lock: lock });
        Self(Arc::new(Inner { kind, start, temporary, own }))
    }

    /// Returns what kind it is.
    pub fn kind(&self) -> WorkspaceKind {
        self.0.kind
    }

    /// Tells whether its files are those of a run.
    pub(crate) fn is_of(&self, run: &RunId) -> bool {
        self.0.own.as_ref().is_some_and(|own| own.run == *run)
    }

    /// Returns the directory in which the run was started.
    pub fn start(&self) -> &Path {
        &self.0.start
    }

    /// Returns its root, where the run has files of its own.
    pub fn root(&self) -> Option<&Path> {
        self.0.own.as_ref().map(|own| own.known.tree.as_path())
    }

    /// Returns the directory in which the run works.
    pub fn working_directory(&self) -> PathBuf {
        match &self.0.own {
            Some(own) => below(&own.known.tree, &own.known.within),
            None => self.0.start.clone(),
        }
    }

    /// Returns what its programs may write beside its files, so that they can commit to its branch.
    pub(crate) fn writable(&self) -> Vec<PathBuf> {
        let repository = self.0.own.as_ref().and_then(|own| own.known.repository.as_ref());
        repository.map(worktree::writable).unwrap_or_default()
    }

    /// Returns what its programs must not write, whatever else they may.
    pub(crate) fn untouched(&self) -> Vec<PathBuf> {
        match (&self.0.own, self.0.kind) {
            (Some(own), _) => {
                let common = own.known.repository.as_ref().map(|it| it.common.clone());
                [own.known.source.clone()].into_iter().chain(common).collect()
            }
            (None, WorkspaceKind::Readonly) => vec![self.0.start.clone()],
            (None, _) => Vec::new(),
        }
    }

    /// Makes a directory for temporary files of its own, if there is a place for one, and returns it.
    pub(crate) fn temporary(&self) -> io::Result<Option<PathBuf>> {
        self.0.temporary.iter().try_for_each(std::fs::create_dir_all)?;
        Ok(self.0.temporary.clone())
    }

    /// Removes what the run needed only while it worked.
    pub fn tidy(&self) {
        if let Some(temporary) = &self.0.temporary {
            std::fs::remove_dir_all(temporary).ok();
        }
    }

    /// Finds out what was changed in it; nothing, where the run had no files of its own.
    pub async fn changes(&self) -> Result<Option<WorkspaceReport>, WorkspaceError> {
        let Some(own) = &self.0.own else { return Ok(None) };
        Ok(Some(own.report(&own.changes().await?)))
    }

    /// Returns all that was changed, as git writes it, with a list of files.
    pub async fn diff(&self) -> Result<Changes, WorkspaceError> {
        match &self.0.own {
            Some(own) => own.changes().await,
            None => Ok(Changes::default()),
        }
    }

    /// Applies what was changed to the files the run was started with. If it does not fit everywhere, it is
    /// applied nowhere. Nothing is committed.
    pub async fn apply(&self, how: Apply) -> Result<Changes, WorkspaceError> {
        let Some(own) = &self.0.own else { return Ok(Changes::default()) };
        let changes = own.changes().await?;
        if changes.files.is_empty() {
            return Ok(changes);
        }
        match &own.known.repository {
            Some(repository) => {
                worktree::apply(&own.workspaces, &own.run, &own.known, repository, how).await?;
            }
            None => copy::apply(&own.workspaces, &own.run, &own.known, how).await?,
        }
        if how == Apply::Really {
            let applied = Some(changes.fingerprint());
            let known = Known { applied, ..own.known.clone() };
            save(&own.workspaces, &own.workspaces.open_directory()?, &own.run, &known)?;
        }
        Ok(changes)
    }

    /// Removes it with everything that belongs to it. Nobody can work in it any more.
    pub async fn discard(&self) -> Result<(), WorkspaceError> {
        let Some(own) = &self.0.own else { return Ok(()) };
        let store = own.workspaces.open_directory()?;
        own.workspaces.clear(&store, &own.run, Some(&own.known)).await
    }

    /// Returns where a path of the user's files is in the workspace; nothing, if it is not there.
    pub(crate) fn own_path(&self, path: &Path) -> Option<PathBuf> {
        let known = &self.0.own.as_ref()?.known;
        if known.source.starts_with(path) {
            return Some(known.tree.clone());
        }
        path.strip_prefix(&known.source).ok().map(|below| known.tree.join(below))
    }

    /// Tells whether there is something in it that is nowhere else: changes that were not applied, or
    /// commits on its branch.
    pub async fn is_needed(&self) -> Result<bool, WorkspaceError> {
        let Some(own) = &self.0.own else { return Ok(false) };
        let changes = own.changes().await?;
        if changes.files.is_empty() {
            return match &own.known.repository {
                Some(repository) => worktree::has_commits(&own.workspaces, repository).await,
                None => Ok(false),
            };
        }
        Ok(own.known.applied != Some(changes.fingerprint()))
    }
}

/// Whether changes are applied, or it is only tried whether they fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apply {
    /// They are applied.
    Really,
    /// It is tried, and nothing is changed.
    Check,
}

/// What was changed in a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// The files that are not what they were.
    pub files: Vec<convoke_core::FileChange>,
    /// How they differ, as git writes it. Text of files in it need not be UTF-8.
    pub diff: Vec<u8>,
    /// What there is to know about it.
    pub notes: Vec<String>,
}

impl Changes {
    fn fingerprint(&self) -> String {
        hex(&Sha256::digest(&self.diff))
    }
}

impl Own {
    async fn changes(&self) -> Result<Changes, WorkspaceError> {
        let Self { workspaces, run, known, .. } = self;
        let store = workspaces.open_directory()?;
        let changes = match &known.repository {
            Some(repository) => worktree::changes(workspaces, run, known, repository, &store).await,
            None => copy::changes(workspaces, run).await,
        }?;
        let name = part(run, ".diff");
        store
            .write(&name, &changes.diff)
            .map_err(WorkspaceError::files(workspaces.directory.join(name), "written"))?;
        Ok(changes)
    }

    fn place(&self) -> WorkspacePlace {
        let Known { kind, tree, repository, .. } = &self.known;
        WorkspacePlace {
            kind: *kind,
            path: tree.to_string_lossy().into_owned(),
            branch: repository.as_ref().map(|repository| repository.branch.clone()),
            base: repository.as_ref().map(|repository| repository.base.clone()),
        }
    }

    fn report(&self, changes: &Changes) -> WorkspaceReport {
        let whole = self.workspaces.directory.join(part(&self.run, ".diff"));
        let (diff, is_cut) = diff::bounded(&changes.diff);
        WorkspaceReport {
            place: self.place(),
            files: changes.files.clone(),
            diff,
            whole_diff: is_cut.then(|| whole.to_string_lossy().into_owned()),
            notes: changes.notes.clone(),
        }
    }
}

/// A run with files of its own tells what it changed.
#[async_trait]
impl Workplace for Workspace {
    fn place(&self) -> WorkspacePlace {
        match &self.0.own {
            Some(own) => own.place(),
            None => WorkspacePlace {
                kind: self.0.kind,
                path: self.0.start.to_string_lossy().into_owned(),
                branch: None,
                base: None,
            },
        }
    }

    fn notes(&self) -> Vec<String> {
        self.0.own.as_ref().map(|own| own.known.notes.clone()).unwrap_or_default()
    }

    async fn changes(&self) -> Result<WorkspaceReport, String> {
        let nothing = || WorkspaceReport {
            place: Workplace::place(self),
            files: Vec::new(),
            diff: String::new(),
            whole_diff: None,
            notes: Vec::new(),
        };
        let changes = Self::changes(self).await.map_err(|error| {
            let said = convoke_core::causes::chain(&error).map(ToString::to_string);
            said.collect::<Vec<_>>().join(": ")
        })?;
        Ok(changes.unwrap_or_else(nothing))
    }
}
