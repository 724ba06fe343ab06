//! What is known about a workspace with files of its own, and kept beside it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use cap_std::fs::Dir;
use convoke_core::{RunId, WorkspaceKind};
use serde::{Deserialize, Serialize};

use super::{WorkspaceError, Workspaces, part};

/// What is known about a workspace with files of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Known {
    pub(super) kind: WorkspaceKind,
    /// The root of what it was made of.
    pub(super) source: PathBuf,
    /// Its own root.
    pub(super) tree: PathBuf,
    /// The directory to work in, below both.
    pub(super) within: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) repository: Option<Repository>,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    /// Whether it was made to its end.
    #[serde(default)]
    pub(super) complete: bool,
    /// What of it was applied, as the hash of a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) applied: Option<String>,
    /// What its files were when they were applied, as a tree of git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) applied_tree: Option<String>,
    /// The same, where there is no git.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) applied_files: AppliedFiles,
}

impl Known {
    /// What is known when it is begun.
    pub(super) const fn begun(
        kind: WorkspaceKind,
        source: PathBuf,
        tree: PathBuf,
        within: PathBuf,
        repository: Option<Repository>,
    ) -> Self {
        Self {
            kind,
            source,
            tree,
            within,
            repository,
            notes: Vec::new(),
            complete: false,
            applied: None,
            applied_tree: None,
            applied_files: BTreeMap::new(),
        }
    }
}

/// What files were when they were applied, by their paths; nothing for those that were gone.
pub(super) type AppliedFiles = BTreeMap<String, Option<String>>;

/// What is known about the repository of a worktree.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Repository {
    /// Its directory, as git uses it where the run was started.
    pub(super) git_directory: PathBuf,
    /// What all its worktrees share.
    pub(super) common: PathBuf,
    /// What it knows about this worktree.
    pub(super) admin: PathBuf,
    pub(super) branch: String,
    pub(super) base: String,
    /// What the files say that lead from the worktree to the repository and back.
    pub(super) links: Vec<(PathBuf, String)>,
}

/// Written into the file that is locked, not in place of it: who waits for the lock holds that file.
pub(super) fn save(
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
