//! The files that lead from a worktree to its repository and back: a run must not change them.

use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::workspace::{Repository, WorkspaceError};

/// Finds what the repository knows about a worktree: what its `.git` file, which git has just written, says.
pub(super) fn admin(tree: &Path, common: &Path) -> Result<PathBuf, WorkspaceError> {
    let path = tree.join(".git");
    let text = read(&path)?;
    let said = text.trim().strip_prefix("gitdir: ").map(PathBuf::from).unwrap_or_default();
    let worktrees = common.join("worktrees").canonicalize().unwrap_or_default();
    match said.canonicalize() {
        Ok(admin) if admin.parent() == Some(worktrees.as_path()) => {
            Ok(common.join("worktrees").join(admin.file_name().unwrap_or_default()))
        }
        _ => {
            let error = std::io::Error::other("it does not lead to its repository");
            Err(WorkspaceError::files(path, "used")(error))
        }
    }
}

/// Returns the files that lead to the repository and back, with what they say.
pub(super) fn links(tree: &Path, admin: &Path) -> Result<Vec<(PathBuf, String)>, WorkspaceError> {
    let paths = [tree.join(".git"), admin.join("commondir"), admin.join("gitdir")];
    paths.into_iter().map(|path| read(&path).map(|text| (path, text))).collect()
}

/// Puts back what a run must not change: whoever uses git in the worktree later would be led to a
/// repository of the run's making, with settings that start programs.
pub(super) fn mend(repository: &Repository) -> Result<Vec<String>, WorkspaceError> {
    let mut notes = Vec::new();
    for (path, text) in &repository.links {
        let is_link = path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file());
        if !is_link && read(path).is_ok_and(|now| now == *text) {
            continue;
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        if !parent.is_dir() {
            continue;
        }
        let cannot = || WorkspaceError::files(path, "put back");
        let parent = Dir::open_ambient_dir(parent, ambient_authority()).map_err(cannot())?;
        if is_link {
            let removed = parent.remove_dir_all(name).or_else(|_| parent.remove_file(name));
            removed.map_err(cannot())?;
        }
        parent.write(name, text).map_err(cannot())?;
        notes.push(format!("`{}` was changed, and was put back", path.display()));
    }
    let own = repository.admin.join("config.worktree");
    if own.symlink_metadata().is_ok() {
        let parent = Dir::open_ambient_dir(&repository.admin, ambient_authority());
        let removed = parent.and_then(|parent| parent.remove_file("config.worktree"));
        removed.map_err(WorkspaceError::files(&own, "removed"))?;
        notes.push("settings of git for the worktree were made, and were removed".to_owned());
    }
    Ok(notes)
}

/// These are small, and git's own.
pub(super) fn read(path: &Path) -> Result<String, WorkspaceError> {
    let cannot = || WorkspaceError::files(path, "read");
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(cannot()(std::io::ErrorKind::InvalidInput.into()));
    };
    let parent = Dir::open_ambient_dir(parent, ambient_authority()).map_err(cannot())?;
    parent.read_to_string(name).map_err(cannot())
}
