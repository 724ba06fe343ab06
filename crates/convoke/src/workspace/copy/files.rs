//! What the files of a directory are: enough to tell whether they are the same.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt};
use sha2::{Digest, Sha256};

use super::LEFT_OUT;
use crate::workspace::{WorkspaceError, hex};

/// What a file is: enough to tell whether it is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) mode: &'static str,
    pub(super) hash: String,
    bytes: u64,
}

/// The files of a directory, by their paths below it.
#[derive(Debug)]
pub(super) struct Files(pub(super) BTreeMap<PathBuf, State>, Dir);

impl Files {
    pub(super) fn read(root: &Path) -> Result<Self, WorkspaceError> {
        let directory = Dir::open_ambient_dir(root, ambient_authority());
        let directory = directory.map_err(WorkspaceError::files(root, "opened"))?;
        let mut files = BTreeMap::new();
        Self::walk(&directory, Path::new(""), &mut files)
            .map_err(WorkspaceError::files(root, "read"))?;
        Ok(Self(files, directory))
    }

    fn walk(directory: &Dir, path: &Path, files: &mut BTreeMap<PathBuf, State>) -> io::Result<()> {
        for entry in directory.entries()? {
            let entry = entry?;
            let name = PathBuf::from(entry.file_name());
            if name == Path::new(LEFT_OUT) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                Self::walk(&directory.open_dir(&name)?, &path.join(&name), files)?;
            } else if let Some(state) = state(directory, &name)? {
                files.insert(path.join(&name), state);
            }
        }
        Ok(())
    }

    pub(super) fn content(&self, path: &Path) -> io::Result<Vec<u8>> {
        content(&self.1, path)
    }
}

/// Returns what is at a path; nothing, if that is neither a file nor a link.
pub(super) fn state(directory: &Dir, path: &Path) -> io::Result<Option<State>> {
    let metadata = match directory.symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let kind = metadata.file_type();
    let mode = match () {
        () if kind.is_symlink() => "120000",
        () if !kind.is_file() => return Ok(None),
        () if metadata.mode() & 0o100 != 0 => "100755",
        () => "100644",
    };
    let mut hasher = Sha256::new();
    let bytes = if kind.is_symlink() {
        let target = content(directory, path)?;
        hasher.update(&target);
        target.len() as u64
    } else {
        io::copy(&mut directory.open(path)?, &mut Hashed(&mut hasher))?
    };
    let hash = hex(&hasher.finalize());
    Ok(Some(State { mode, hash, bytes }))
}

struct Hashed<'a>(&'a mut Sha256);

impl io::Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns what a file says, or where a link leads.
pub(super) fn content(directory: &Dir, path: &Path) -> io::Result<Vec<u8>> {
    if directory.symlink_metadata(path)?.file_type().is_symlink() {
        let target = directory.read_link_contents(path)?;
        return Ok(target.into_os_string().into_encoded_bytes());
    }
    directory.read(path)
}

pub(super) fn is_link(state: &State) -> bool {
    state.mode == "120000"
}
