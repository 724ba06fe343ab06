//! The file in which the project files are listed that the user trusts.

use std::path::{Path, PathBuf};

use convoke::config::{PROJECT_FILE_NAMES, Sources, TrustStore};

use crate::environment::Environment;
use crate::failure::Failure;
use crate::files;

/// Its first lines were folders, which are told from files, and trust nothing any more.
const FILE_NAME: &str = "trusted-folders";
const FIRST_LINE: &str =
    "# Project files that are trusted as long as they have this SHA-256, one a line.";

/// Returns the file by which a project is trusted: its own, or the one that it could have.
pub(crate) fn file_of(sources: &Sources) -> Option<PathBuf> {
    sources.project_file().or_else(|| sources.project_root().map(|root| file_in(&root)))
}

/// Returns the file by which a folder without one is trusted.
pub(crate) fn file_in(folder: &Path) -> PathBuf {
    folder.join(PROJECT_FILE_NAMES.first().copied().unwrap_or("convoke.yml"))
}

/// Returns a project's file as it is listed: with the links of its directory followed.
pub(crate) fn listed_as(file: &Path) -> Option<PathBuf> {
    Some(file.parent()?.canonicalize().ok()?.join(file.file_name()?))
}

/// The list of trusted files and where it is kept.
#[derive(Debug)]
pub(crate) struct TrustFile {
    path: PathBuf,
    store: TrustStore,
}

impl TrustFile {
    /// Reads the list; it is empty where there is no file.
    pub(crate) fn read(environment: &Environment) -> Result<Self, Failure> {
        let directory = environment.config_directory().ok_or_else(|| {
            Failure::new(convoke_core::Cause::State, "there is no place for trusted files")
                .hint("set HOME or XDG_CONFIG_HOME to an absolute path")
        })?;
        let path = directory.join(FILE_NAME);
        let text = files::read_if_there(&path).map_err(|error| {
            let message = format!("the trusted files in `{}` cannot be read", path.display());
            Failure::new(convoke_core::Cause::State, message).because(&error)
        })?;
        Ok(Self { path, store: TrustStore::parse(text.as_deref().unwrap_or(FIRST_LINE)) })
    }

    /// Writes the list back.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        files::write_private(&self.path, &self.store.to_string()).map_err(|error| {
            let message = format!("the trusted files in `{}` cannot be kept", self.path.display());
            Failure::new(convoke_core::Cause::State, message).because(&error)
        })
    }

    /// Returns where the list is kept.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the list.
    pub(crate) const fn store(&self) -> &TrustStore {
        &self.store
    }

    /// Returns the list, to be changed.
    pub(crate) const fn store_mut(&mut self) -> &mut TrustStore {
        &mut self.store
    }
}
