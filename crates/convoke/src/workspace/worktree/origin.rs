//! What each of the user's files is changed from when changes are applied: what it was at the start, or what it became
//! when changes were last applied. One that is already as it is to become is passed over.
//!
//! That is told by its content, as git would take it in. Whether a difference fits does not tell it: lines that are
//! there once may well fit a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use convoke_core::FileChange;

use super::compare::{APART, compared, difference, entries};
use crate::workspace::WorkspaceError;
use crate::workspace::git::Git;
use crate::workspace::room::{Place, look};

/// The trees that matter: at the start, as it was last applied, and now.
#[derive(Clone, Copy)]
pub(super) struct Trees<'a> {
    pub(super) base: &'a str,
    pub(super) applied: &'a str,
    pub(super) now: &'a str,
}

/// What a file is in each of them, as an index is told.
#[derive(Debug)]
pub(super) struct File {
    base: String,
    applied: String,
    now: String,
}

impl File {
    /// Whether it was applied, and is no change any more.
    fn is_undone(&self) -> bool {
        self.now == self.base
    }
}

/// Files by their paths.
pub(super) type Files = BTreeMap<PathBuf, File>;

/// What is not there.
fn is_gone(entry: &str) -> bool {
    entry.starts_with("000000")
}

/// Lists what was changed, or was applied.
pub(super) async fn files(git: &Git, trees: Trees<'_>) -> Result<Files, WorkspaceError> {
    let Trees { base, applied, now } = trees;
    let path = |bytes: Vec<u8>| PathBuf::from(OsStr::from_bytes(&bytes));
    let raw = [APART, "-z", "--raw"];
    let changed = entries(&compared(git, &raw, base, now).await?).into_iter();
    let mut files: Files = changed
        .map(|(name, (base, now))| (path(name), File { applied: base.clone(), base, now }))
        .collect();
    for (name, (base, applied)) in entries(&compared(git, &raw, base, applied).await?) {
        let now = base.clone();
        files.entry(path(name)).or_insert(File { base, applied: String::new(), now }).applied =
            applied;
    }
    Ok(files)
}

/// Finds the files of the user among these, and complains about what is in the way of others.
pub(super) fn places(root: &Path, files: &Files) -> Result<Vec<PathBuf>, WorkspaceError> {
    let opened = Dir::open_ambient_dir(root, ambient_authority());
    let directory = opened.map_err(WorkspaceError::files(root, "opened"))?;
    let is_changed = |path: &Path| files.contains_key(path);
    let (mut there, mut complaints) = (Vec::new(), Vec::new());
    for (path, file) in files {
        let place = look(&directory, path, !is_gone(&file.now), &is_changed)
            .map_err(WorkspaceError::files(root.join(path), "looked at"))?;
        match place {
            Place::File => there.push(path.clone()),
            Place::Free => {}
            Place::Taken(..) => complaints.extend(place.complaint(path)),
        }
    }
    if complaints.is_empty() {
        return Ok(there);
    }
    Err(WorkspaceError::Conflict { path: root.to_owned(), files: complaints })
}

/// Returns what these files of the user are, by their paths. The index is that of the tree they are compared with:
/// whether line ends are changed when git takes in a file depends on what it knows of it.
pub(super) async fn states(
    git: &Git,
    now: &str,
    there: &[PathBuf],
) -> Result<BTreeMap<PathBuf, String>, WorkspaceError> {
    let mut input = Vec::new();
    for path in there {
        input.extend_from_slice(path.as_os_str().as_bytes());
        input.push(0);
    }
    git.run(&["read-tree", now]).await?;
    let take = ["update-index", "-z", "--add", "--replace", "--info-only", "--stdin"];
    git.feed(&take, input).await?;
    let listed = git.run(&["ls-files", "-z", "--stage"]).await?;
    let there: BTreeSet<&Path> = there.iter().map(PathBuf::as_path).collect();
    let states = listed.split(|byte| *byte == 0).filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b'\t')?;
        let (about, path) = (line.get(..at)?, Path::new(OsStr::from_bytes(line.get(at + 1..)?)));
        let about = String::from_utf8_lossy(about);
        let (entry, _) = about.rsplit_once(' ')?;
        there.contains(path).then(|| (path.to_owned(), entry.to_owned()))
    });
    Ok(states.collect())
}

/// What files are changed from.
#[derive(Debug, Default)]
pub(super) struct Origins {
    /// Those that are changed at all, with what they are changed from, as an index is told.
    from: BTreeMap<PathBuf, String>,
    /// Whether all are changed from what they were at the start.
    pub(super) is_base: bool,
}

impl Origins {
    /// Chooses for each file. `holds` tells of one that somebody changed whether what was applied is in it.
    pub(super) async fn choose(
        files: &Files,
        states: &BTreeMap<PathBuf, String>,
        holds: impl AsyncFn(&Path) -> Result<bool, WorkspaceError>,
    ) -> Result<Self, WorkspaceError> {
        let mut origins = Self { from: BTreeMap::new(), is_base: true };
        for (path, file) in files {
            let is = |entry: &String| match states.get(path) {
                Some(state) => state == entry,
                None => is_gone(entry),
            };
            let File { base, applied, now } = file;
            let from = match () {
                () if is(now) => now,
                () if applied == base || is(base) => base,
                () if is(applied) || file.is_undone() || holds(path).await? => applied,
                // What is new does not fit where something is.
                () if is_gone(base) && applied != now => applied,
                () => base,
            };
            origins.is_base &= from == base;
            if from != now {
                origins.from.insert(path.clone(), from.clone());
            }
        }
        Ok(origins)
    }

    /// Tells whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.from.is_empty()
    }

    /// Makes a tree that has all files as they are to become but for those that are changed.
    pub(super) async fn tree(&self, git: &Git, now: &str) -> Result<String, WorkspaceError> {
        let mut input = Vec::new();
        for (path, entry) in &self.from {
            input.extend_from_slice(entry.as_bytes());
            input.push(b'\t');
            input.extend_from_slice(path.as_os_str().as_bytes());
            input.push(0);
        }
        git.run(&["read-tree", now]).await?;
        git.feed(&["update-index", "-z", "--index-info"], input).await?;
        git.line(&["write-tree"]).await
    }
}

/// Returns what was applied and is now as it was at the start.
pub(super) async fn undone(
    git: &Git,
    trees: Trees<'_>,
    files: &Files,
) -> Result<Vec<FileChange>, WorkspaceError> {
    if !files.values().any(File::is_undone) {
        return Ok(Vec::new());
    }
    let mut undone = difference(git, APART, trees.applied, trees.now).await?.files;
    undone.retain(|change| files.get(Path::new(&change.path)).is_some_and(File::is_undone));
    Ok(undone)
}
