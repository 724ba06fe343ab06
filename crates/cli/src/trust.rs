//! The file in which the projects are listed that the user trusts.

use std::io;
use std::path::{Path, PathBuf};

use convoke::config::{Sources, TrustStore};
use convoke_core::Cause;

use crate::environment::Environment;
use crate::failure::Failure;
use crate::files;

const FILE_NAME: &str = "trusted-folders";
const FIRST_LINE: &str =
    "# Projects that are trusted, each with the SHA-256 of every entry that was shown, one a line.";

/// Returns the project that is trusted or not: the folder of its file, or its root. Links are followed.
pub(crate) fn folder_of(sources: &Sources) -> Option<PathBuf> {
    let file = sources.project_file();
    let folder = file.and_then(|file| Some(file.parent()?.to_owned()));
    folder.or_else(|| sources.project_root())?.canonicalize().ok()
}

/// The list of trusted projects and where it is kept.
#[derive(Debug)]
pub(crate) struct TrustFile {
    path: PathBuf,
    store: TrustStore,
}

impl TrustFile {
    /// Reads the list; it is empty where there is no file.
    pub(crate) fn read(environment: &Environment) -> Result<Self, Failure> {
        Self::read_at(place(environment)?)
    }

    /// Changes the list as it is now, and writes it back if that changed anything. Nobody else of us changes it
    /// meanwhile, and nothing is brought back that was taken off the list since it was last read.
    pub(crate) fn change<T>(
        environment: &Environment,
        change: impl FnOnce(&mut TrustStore) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let path = place(environment)?;
        let _held = files::hold(&path).map_err(|error| not_kept(&path, &error))?;
        let mut file = Self::read_at(path)?;
        let before = file.store.clone();
        let done = change(&mut file.store)?;
        if file.store != before {
            files::write_private(&file.path, &file.store.to_string())
                .map_err(|error| not_kept(&file.path, &error))?;
        }
        Ok(done)
    }

    fn read_at(path: PathBuf) -> Result<Self, Failure> {
        let text = files::read_if_there(&path).map_err(|error| {
            let message = format!("the trusted projects in `{}` cannot be read", path.display());
            Failure::new(Cause::State, message).because(&error)
        })?;
        Ok(Self { path, store: TrustStore::parse(text.as_deref().unwrap_or(FIRST_LINE)) })
    }

    /// Returns where the list is kept.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the list.
    pub(crate) const fn store(&self) -> &TrustStore {
        &self.store
    }
}

fn place(environment: &Environment) -> Result<PathBuf, Failure> {
    let directory = environment.config_directory().ok_or_else(|| {
        Failure::new(Cause::State, "there is no place for trusted projects")
            .hint("set HOME or XDG_CONFIG_HOME to an absolute path")
    })?;
    Ok(directory.join(FILE_NAME))
}

fn not_kept(path: &Path, error: &io::Error) -> Failure {
    let message = format!("the trusted projects in `{}` cannot be kept", path.display());
    Failure::new(Cause::State, message).because(error)
}
