//! Where a run works: the user's files as they are, or files of its own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use convoke_agent::Workplace;
use convoke_core::{RunId, WorkspaceKind, WorkspacePlace, WorkspaceReport};

use super::changes::{Applied, Apply, Changes, Fit};
use super::known::{Known, save};
use super::{Lock, WorkspaceError, Workspaces, below, copy, diff, part, worktree};

/// Where a run works. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workspace(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    kind: WorkspaceKind,
    start: PathBuf,
    /// Where its programs may put temporary files, if there is such a place.
    temporary: Option<PathBuf>,
    own: Option<Own>,
}

#[derive(Debug)]
pub(super) struct Own {
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

    pub(super) fn of_the_user(
        kind: WorkspaceKind,
        start: PathBuf,
        temporary: Option<PathBuf>,
    ) -> Self {
        Self(Arc::new(Inner { kind, start, temporary, own: None }))
    }

    pub(super) fn own(
        workspaces: &Workspaces,
        run: &RunId,
        start: PathBuf,
        known: Known,
        lock: Lock,
    ) -> Self {
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
        Ok(Some(own.report(&own.changes(&own.known_now()).await?)))
    }

    /// Returns all that was changed, as git writes it, with a list of files.
    pub async fn diff(&self) -> Result<Changes, WorkspaceError> {
        match &self.0.own {
            Some(own) => own.changes(&own.known_now()).await,
            None => Ok(Changes::default()),
        }
    }

    /// Applies what was changed to the files the run was started with. What was applied before and is again as it was
    /// at the start is taken back there. If it does not fit everywhere, it is applied nowhere. Nothing is committed.
    pub async fn apply(&self, how: Apply) -> Result<Changes, WorkspaceError> {
        let Some(own) = &self.0.own else { return Ok(Changes::default()) };
        let known = own.known_now();
        let mut changes = own.changes(&known).await?;
        let applied = Some(changes.fingerprint());
        if changes.files.is_empty() && (known.applied.is_none() || known.applied == applied) {
            return Ok(changes);
        }
        let Known { source, repository, .. } = &known;
        if !source.is_dir() {
            let (run, path) = (own.run.clone(), source.clone());
            return Err(WorkspaceError::NowhereToApply { run, path });
        }
        let (workspaces, run) = (&own.workspaces, &own.run);
        let fitted = match repository {
            Some(repository) => {
                worktree::apply(workspaces, run, &known, repository, &changes, how).await
            }
            None => copy::apply(workspaces, run, &known, how).await,
        };
        let Applied { fit, files, undone } = match fitted {
            // What was taken over once does not fit what came of it.
            Err(WorkspaceError::Conflict { .. }) if known.applied == applied => {
                return Err(WorkspaceError::AlreadyApplied { path: source.clone() });
            }
            fitted => fitted?,
        };
        changes.already = fit == Fit::Already;
        changes.take_back(undone);
        if how == Apply::Really {
            let (applied_tree, applied_files) = (changes.content.clone(), files);
            let known = Known { applied, applied_tree, applied_files, ..known };
            save(workspaces, &workspaces.open_directory()?, run, &known)?;
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

    /// Tells whether somebody still needs it: there is something in it that is nowhere else, or in a
    /// workspace that was made of this one, which can only be applied here.
    pub async fn is_needed(&self) -> Result<bool, WorkspaceError> {
        let Some(own) = &self.0.own else { return Ok(false) };
        Ok(self.holds_changes().await? || own.workspaces.is_needed_below(&own.known.tree).await?)
    }

    /// Tells whether there is something in it that is nowhere else: changes that were not applied, also that something
    /// which was applied is undone, or commits on its branch.
    pub async fn holds_changes(&self) -> Result<bool, WorkspaceError> {
        let Some(own) = &self.0.own else { return Ok(false) };
        let known = own.known_now();
        let changes = own.changes(&known).await?;
        if known.applied.as_ref().is_some_and(|applied| *applied != changes.fingerprint()) {
            return Ok(true);
        }
        if changes.files.is_empty() {
            return match &known.repository {
                Some(repository) => worktree::has_commits(&own.workspaces, repository).await,
                None => Ok(false),
            };
        }
        Ok(known.applied.is_none())
    }
}

impl Own {
    /// Returns what is known now: something may have been applied since it was opened.
    fn known_now(&self) -> Known {
        let read = self.workspaces.known(&self.run);
        read.map_or_else(|_| self.known.clone(), |(_, known)| known)
    }

    async fn changes(&self, known: &Known) -> Result<Changes, WorkspaceError> {
        let Self { workspaces, run, .. } = self;
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
