//! What was changed in a workspace, and what becomes of it.

use sha2::{Digest, Sha256};

use super::hex;

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
    /// What was changed since they were last applied, where that is known.
    pub(super) since: Option<Since>,
    /// What was applied and is no change any more, where there is such.
    pub(super) undone: Option<Undone>,
}

/// What was changed since something was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Since {
    pub(super) files: Vec<convoke_core::FileChange>,
    pub(super) diff: Vec<u8>,
}

/// What was applied before and is again as it was at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Undone {
    /// Those files.
    pub(super) files: Vec<convoke_core::FileChange>,
    /// What takes them back and applies all else.
    pub(super) whole: Since,
}

/// How changes fit where they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// They were applied, or can be.
    Now,
    /// The files are so already.
    Already,
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
