//! Removes temporary files that writers left behind which were killed.

use std::io;
use std::path::Path;

use cap_std::fs::{Dir, MetadataExt};

use super::exchange::OldFile;
use super::lock::DirectoryLock;
use super::new_file::inode_in;

/// Removes temporary files of dead writers from a directory that is locked. A new content that was never put in
/// its place goes. A file that had come out of its place is the user's: it is moved to `keep`, and stays where it
/// is if there is no such directory.
pub fn sweep(directory: &Dir, lock: &DirectoryLock, keep: Option<&Path>) -> io::Result<()> {
    // Without the lock a writer may be alive.
    if !lock.is_complete() {
        return Ok(());
    }
    for entry in directory.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(inode) = inode_in(&name) else { continue };
        let Ok(metadata) = directory.symlink_metadata(&name) else { continue };
        if metadata.ino() == inode {
            directory.remove_file(&name)?;
        } else if let Some(keep) = keep
            && !metadata.is_dir()
        {
            OldFile::found(directory, name)?.keep(keep)?;
        }
    }
    Ok(())
}
