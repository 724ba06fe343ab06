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
}
