//! Where a run works, and what it changed there.
//!
//! Plain data: whoever makes a workspace fills it in, and whoever reads a journal or a report finds it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::word::word_enum;

word_enum! {
    /// Where a run works: with its user's files, or with files of its own.
    WorkspaceKind {
        /// In the directory it was started in.
        Shared = "shared",
        /// In a git worktree of its own, on a branch of its own.
        Worktree = "worktree",
        /// In a copy of the directory.
        Copy = "copy",
        /// In the directory, where it may look and change nothing.
        Readonly = "readonly",
    }
}

impl WorkspaceKind {
    /// Tells whether the run has files of its own, which have to be taken over to count.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Worktree | Self::Copy)
    }

    /// Tells whether this one lets a run do less to its user's files than the other. Of two that have
    /// files of their own, neither is stricter.
    pub const fn is_stricter_than(self, other: Self) -> bool {
        self.strictness() > other.strictness()
    }

    const fn strictness(self) -> u8 {
        match self {
            Self::Shared => 0,
            Self::Worktree | Self::Copy => 1,
            Self::Readonly => 2,
        }
    }
}

word_enum! {
    /// What became of a file.
    Change {
        /// It is new.
        Added = "added",
        /// It says something else.
        Modified = "modified",
        /// It is gone.
        Deleted = "deleted",
        /// It has another name, and may say something else.
        Renamed = "renamed",
        /// It is of another kind: a link now, or no longer one.
        Retyped = "retyped",
    }
}

/// One file that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// The file, below the root of the workspace.
    pub path: String,
    /// What it was called before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What became of it.
    pub change: Change,
    /// How many lines are new; nothing for what has no lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// How many lines are gone; nothing for what has no lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
}

/// Where a run works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspacePlace {
    /// What kind of place it is.
    pub kind: WorkspaceKind,
    /// Its root.
    pub path: String,
    /// The branch it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// What a run changed in its workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceReport {
    /// Where it worked.
    #[serde(flatten)]
    pub place: WorkspacePlace,
    /// The files that are not what they were.
    pub files: Vec<FileChange>,
    /// How they differ, as git writes it. Only the beginning, where it is long.
    pub diff: String,
    /// The file with all of it, where `diff` is only the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_diff: Option<String>,
    /// What there is to know about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_keeps_more_from_being_changed_is_stricter() {
        use WorkspaceKind::{Copy, Readonly, Shared, Worktree};
        let stricter = |one: WorkspaceKind, other| one.is_stricter_than(other);
        assert!(stricter(Worktree, Shared) && stricter(Copy, Shared) && stricter(Readonly, Copy));
        assert!(!stricter(Worktree, Copy) && !stricter(Copy, Worktree));
        assert!(WorkspaceKind::ALL.iter().all(|kind| !stricter(*kind, *kind)));
    }
}
