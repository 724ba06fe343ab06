//! Finding the repository of a directory, and refusing one that is not really that of its files.

use std::path::{Path, PathBuf};

use super::links::read;
use crate::workspace::git::{Git, Rights};
use crate::workspace::{WorkspaceError, Workspaces};

/// Where a directory lies in a repository.
pub(super) struct Found {
    pub(super) top: PathBuf,
    pub(super) git_directory: PathBuf,
    pub(super) common: PathBuf,
    pub(super) within: PathBuf,
}

/// Says why no worktree can be made of a directory, if none can.
pub(in crate::workspace) async fn check(
    workspaces: &Workspaces,
    start: &Path,
) -> Result<(), WorkspaceError> {
    find(workspaces, start).await.map(drop)
}

/// Finds the repository of a directory. One whose configuration says that its files are elsewhere is
/// refused: that is not what the user sees.
pub(super) async fn find(workspaces: &Workspaces, start: &Path) -> Result<Found, WorkspaceError> {
    let git = workspaces.git(Rights::default(), start)?;
    let none = |why: &str| WorkspaceError::NoRepository { path: start.into(), why: why.into() };
    let asked = ["rev-parse", "--path-format=absolute", "--absolute-git-dir", "--git-common-dir"];
    if let Some(said) = git.complaint(&asked).await? {
        let said = said.lines().next().unwrap_or_default().trim_start_matches("fatal: ");
        return Err(none(said));
    }
    let printed = git.line(&asked).await?;
    let mut lines = printed.lines().map(PathBuf::from);
    let (Some(git_directory), Some(common)) = (lines.next(), lines.next()) else {
        return Err(none("git does not say where its repository is"));
    };
    let Some(top) = git.try_run(&["rev-parse", "--show-toplevel"]).await? else {
        return Err(none("it is a repository without files (bare), or inside of one"));
    };
    let top = PathBuf::from(String::from_utf8_lossy(&top).trim_end_matches('\n').to_owned());
    let linked = top.join(".git");
    let (Ok(top), true) = (top.canonicalize(), linked.symlink_metadata().is_ok()) else {
        return Err(none("its configuration says that its files are elsewhere (core.worktree)"));
    };
    let Ok(within) = start.strip_prefix(&top).map(Path::to_owned) else {
        return Err(none("its configuration says that its files are elsewhere (core.worktree)"));
    };
    if !belongs(&git, &top, &git_directory, &common).await? {
        return Err(none("its `.git` leads to a repository that does not know it"));
    }
    Ok(Found { top, git_directory, common, within })
}

/// Tells whether a repository is that of these files: it lies in them, or knows them as a worktree or as a
/// submodule. A folder could else lead to any repository of the user.
async fn belongs(
    git: &Git,
    top: &Path,
    git_directory: &Path,
    common: &Path,
) -> Result<bool, WorkspaceError> {
    let (Ok(real), Ok(common)) = (git_directory.canonicalize(), common.canonicalize()) else {
        return Ok(false);
    };
    if real == top.join(".git") && common == real {
        return Ok(true);
    }
    // A link of a worktree back to it is relative to where it stands, or absolute.
    if real.starts_with(&common)
        && let Ok(back) = read(&real.join("gitdir"))
    {
        let back = real.join(back.trim()).canonicalize();
        return Ok(back.is_ok_and(|back| back == top.join(".git")));
    }
    let of_repository = git.clone().repository(&real);
    let place = of_repository.try_run(&["config", "--local", "core.worktree"]).await?;
    let place = place.map(|place| String::from_utf8_lossy(&place).trim().to_owned());
    let place = place.and_then(|place| real.join(place).canonicalize().ok());
    Ok(common == real && place.is_some_and(|place| place == top))
}
