//! The file in which the user's trusted folders are listed.

use std::path::{Path, PathBuf};

use convoke::config::TrustStore;

use crate::environment::Environment;
use crate::failure::Failure;
use crate::files;

const FILE_NAME: &str = "trusted-folders";
const FIRST_LINE: &str = "# Folders whose convoke.yml is trusted, one a line, with all below them.";

/// The list of trusted folders and where it is kept.
#[derive(Debug)]
pub(crate) struct TrustFile {
    path: PathBuf,
    store: TrustStore,
}

impl TrustFile {
    /// Reads the list; it is empty where there is no file.
    pub(crate) fn read(environment: &Environment) -> Result<Self, Failure> {
        let directory = environment.config_directory().ok_or_else(|| {
            Failure::new(convoke_core::Cause::State, "there is no place for trusted folders")
                .hint("set HOME or XDG_CONFIG_HOME to an absolute path")
        })?;
        let path = directory.join(FILE_NAME);
        let text = files::read_if_there(&path).map_err(|error| {
            let message = format!("the trusted folders in `{}` cannot be read", path.display());
            Failure::new(convoke_core::Cause::State, message).because(&error)
        })?;
        Ok(Self { path, store: TrustStore::parse(text.as_deref().unwrap_or(FIRST_LINE)) })
    }

    /// Writes the list back.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        files::write_private(&self.path, &self.store.to_string()).map_err(|error| {
            let message =
                format!("the trusted folders in `{}` cannot be kept", self.path.display());
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
