//! Copies: for directories without git.
//!
//! Two copies are made: one to work with, and one that stays as it was. What a run changed is the difference
//! between them, so it does not matter what becomes of the original meanwhile. Files are opened below a
//! directory handle throughout: a link leads nowhere else. Where the file system can, copies share their
//! blocks.
//!
//! | module | owns |
//! | --- | --- |
//! | `make` | making both copies |
//! | `files` | what the files of a directory are |
//! | `compare` | telling what a run changed |
//! | `apply` | applying that to the original |

mod apply;
mod compare;
mod files;
mod make;

use std::io;
use std::path::Path;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};

pub(super) use self::apply::apply;
pub(super) use self::compare::changes;
pub use self::make::CopyLimits;
pub(super) use self::make::prepare;
use super::WorkspaceError;

/// What belongs to git is not copied: the copy has no history, and cannot change it.
const LEFT_OUT: &str = ".git";

/// Removes a directory, also one whose owner took away the right to.
pub(super) fn remove_directory(parent: &Dir, name: &str) -> io::Result<()> {
    match parent.remove_dir_all(name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(parent, Path::new(name))?;
            parent.remove_dir_all(name)
        }
        ended => ended,
    }
}

fn open_up(parent: &Dir, name: &Path) -> io::Result<()> {
    parent.set_permissions(name, Permissions::from_mode(0o700))?;
    let directory = parent.open_dir(name)?;
    for entry in directory.entries()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&directory, Path::new(&entry.file_name()))?;
        }
    }
    Ok(())
}

/// Shares blocks where the file system can: `io::copy` between files asks it to.
fn copy_file(from: &Dir, to: &Dir, name: &Path, new: &Path, mode: u32) -> io::Result<()> {
    let mut source = from.open(name)?.into_std();
    let mut options = OpenOptions::new();
    // Whoever runs this has to be able to remove it again.
    options.write(true).create_new(true).mode(mode & 0o777 | 0o600);
    let mut target = to.open_with(new, &options)?.into_std();
    io::copy(&mut source, &mut target).map(drop)
}

/// Does what waits for a disk where nobody else waits for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        let error = io::Error::other(error);
        Err(WorkspaceError::files("", "used")(error))
    })
}
