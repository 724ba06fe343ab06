//! A directory for temporary files that only the programs of one spawner use.
//!
//! The usual one is shared with everybody, and closed where something hidden lies below it. This one is
//! made with the first program and removed with the spawner. Where it cannot be made, programs go
//! without: what they are told about temporary files is then what they were told before.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::confinement::Confinement;

const PREFIX: &str = "convoke-";
const FOR_THE_OWNER_ALONE: u32 = 0o700;

/// The directory, made or not.
#[derive(Debug)]
pub(super) struct OwnDirectory {
    /// Where it is made; nowhere, if it would be hidden there.
    below: Option<PathBuf>,
    made: OnceLock<Option<TempDir>>,
}

impl OwnDirectory {
    /// Says where it will be. The confinement has been settled.
    pub(super) fn of(confinement: &Confinement) -> Self {
        let is_hidden =
            |path: &PathBuf| confinement.hidden.iter().any(|hidden| path.starts_with(hidden));
        let below = confinement.temporary.clone().filter(|path| !is_hidden(path));
        Self { below, made: OnceLock::new() }
    }

    /// Returns where it is, and makes it the first time.
    pub(super) fn path(&self) -> Option<&Path> {
        let make = |below: &PathBuf| {
            tempfile::Builder::new()
                .prefix(PREFIX)
                .permissions(Permissions::from_mode(FOR_THE_OWNER_ALONE))
                .tempdir_in(below)
                .ok()
        };
        self.made.get_or_init(|| self.below.as_ref().and_then(make)).as_ref().map(TempDir::path)
    }
}
