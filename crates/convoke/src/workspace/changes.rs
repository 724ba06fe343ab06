//! What was changed in a workspace, and what becomes of it.

use sha2::{Digest, Sha256};

use super::hex;
use super::known::AppliedFiles;

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
    /// Whether they were applied before: the files were so already, and nothing was done.
    pub already: bool,
    /// Those of the files that were applied before and are again as they were at the start. Only applying tells them;
    /// how they differ is not in `diff`.
    pub taken_back: Vec<String>,
    /// What the files are, as a tree of git.
    pub(super) content: Option<String>,
}

/// How changes fit where they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// They were applied, or can be.
    Now,
    /// The files are so already.
    Already,
}

/// What came of applying.
pub(super) struct Applied {
    pub(super) fit: Fit,
    /// What the files are then, where there is no git.
    pub(super) files: AppliedFiles,
    /// What was applied before and is taken back.
    pub(super) undone: Vec<convoke_core::FileChange>,
}

impl Changes {
    pub(super) fn fingerprint(&self) -> String {
        hex(&Sha256::digest(&self.diff))
    }

    /// Lists what is taken back with what is changed.
    pub(super) fn take_back(&mut self, undone: Vec<convoke_core::FileChange>) {
        self.taken_back = undone.iter().map(|file| file.path.clone()).collect();
        self.files.extend(undone);
        self.files.sort_by(|one, other| one.path.cmp(&other.path));
    }
}
