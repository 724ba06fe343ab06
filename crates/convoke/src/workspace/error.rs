//! Why a workspace cannot be made or used, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use convoke_core::RunId;

/// A workspace that cannot be made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// A directory or file cannot be used.
    #[error("`{}` cannot be {what}", path.display())]
    Files {
        /// Which.
        path: PathBuf,
        /// What was tried, as `read` or `written`.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// There is no git.
    #[error("a worktree needs git, which is not there: {0}")]
    NoGit(String),
    /// Git cannot be confined, and has to be.
    #[error("a worktree needs git, which cannot be confined here: {0}")]
    NotConfined(String),
    /// It is not in a repository that can have worktrees.
    #[error("no worktree can be made of `{}`: {why}", path.display())]
    NoRepository {
        /// The directory.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Git failed.
    #[error("`git {command}` failed: {said}")]
    Git {
        /// Which command.
        command: String,
        /// What it said.
        said: String,
    },
    /// There is more than may be copied or carried over.
    #[error("`{}` has {what}, more than the limit of {limit}", path.display())]
    TooMuch {
        /// What was to be copied.
        path: PathBuf,
        /// How much there is.
        what: String,
        /// How much may be.
        limit: String,
    },
    /// The workspace would be a part of what it is made of.
    #[error("`{}` cannot be copied, since workspaces are kept below it", path.display())]
    Inside {
        /// The directory.
        path: PathBuf,
    },
    /// It is gone.
    #[error("the workspace of run `{run}` is gone: `{}` is not there", path.display())]
    Gone {
        /// The run.
        run: RunId,
        /// Where it was.
        path: PathBuf,
    },
    /// Somebody works with it.
    #[error("the workspace of run `{run}` is in use")]
    InUse {
        /// The run.
        run: RunId,
    },
    /// What is known about it cannot be read.
    #[error("what is known about the workspace of run `{run}` cannot be read: {why}")]
    Unreadable {
        /// The run.
        run: RunId,
        /// Why not.
        why: String,
    },
    /// What it was made of is gone, so what was changed in it cannot be applied there.
    #[error("the changes of `{run}` belong to `{}`, which is not there any more", path.display())]
    NowhereToApply {
        /// The run.
        run: RunId,
        /// What it was made of.
        path: PathBuf,
    },
    /// What was changed was applied before, and the files were changed since.
    #[error("the changes were applied to `{}` already, and do not fit a second time", path.display())]
    AlreadyApplied {
        /// The directory they were applied to.
        path: PathBuf,
    },
    /// What was changed does not fit what is there now. Nothing was changed.
    #[error("the changes do not fit `{}` as it is now, so nothing was changed", path.display())]
    Conflict {
        /// The directory they were to be applied to.
        path: PathBuf,
        /// The files they do not fit.
        files: Vec<String>,
    },
}

impl WorkspaceError {
    /// Says what to do about it, where that is known.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoGit(_) | Self::NotConfined(_) | Self::NoRepository { .. } => {
                Some("`--workspace copy` works without git")
            }
            Self::TooMuch { .. } => Some(
                "start it in a smaller directory, or in a git repository with `--workspace worktree`, \
                 which leaves out ignored files",
            ),
            Self::Inside { .. } => Some("start it in a directory below"),
            Self::InUse { .. } => Some("wait until that ends, or stop it"),
            Self::NowhereToApply { .. } => Some(
                "`convoke runs diff ID > changes.patch` has all of them; `git apply changes.patch` applies \
                 them elsewhere",
            ),
            Self::AlreadyApplied { .. } => {
                Some("nothing is missing unless you undid them; `convoke runs diff` still has them")
            }
            Self::Conflict { .. } => Some(
                "somebody changed these files meanwhile; `convoke runs diff` shows what was to be \
                 changed, and the workspace still has all of it",
            ),
            _ => None,
        }
    }

    pub(super) fn too_much(path: &Path, what: String, limit: String) -> Self {
        Self::TooMuch { path: path.to_owned(), what, limit }
    }

    pub(super) fn files(
        path: impl Into<PathBuf>,
        what: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Files { path, what, source }
    }
}
