//! What can go wrong before there is a runtime, or a model.

use std::io;
use std::path::PathBuf;

use convoke_agent::registry;
use convoke_core::policy::RuleError;
use convoke_model::ModelError;
use convoke_tool::{RegistryError, RootError, ViewError};

use crate::hooks::HookError;
use crate::models::ModelChoiceError;

/// A runtime that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The working directory cannot be used.
    #[error("the working directory `{}` cannot be used", path.display())]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An allowed path cannot be opened (`tools.allowedPaths`).
    #[error(transparent)]
    Root(#[from] RootError),
    /// A tool cannot be registered.
    #[error(transparent)]
    Tool(#[from] RegistryError),
    /// The choice of tools names what does not exist (`tools.enabled`, `tools.exclude`).
    #[error(transparent)]
    View(#[from] ViewError),
    /// A rule cannot be used (`policy.rules`).
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A hook cannot be used (`hooks`).
    #[error(transparent)]
    Hook(#[from] HookError),
    /// An agent of the program cannot be used.
    #[error(transparent)]
    Agent(#[from] registry::RegistryError),
}

impl RuntimeError {
    /// Returns the setting that cannot be used, where one is to blame.
    pub const fn setting(&self) -> Option<&'static str> {
        match self {
            Self::WorkingDirectory { .. } | Self::Agent(_) => None,
            Self::Root(_) => Some("tools.allowedPaths"),
            Self::Tool(_) => Some("tools.commands"),
            Self::View(_) => Some("tools.enabled"),
            Self::Rule(_) => Some("policy.rules"),
            Self::Hook(_) => Some("hooks"),
        }
    }
}

/// A model that cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelSetupError {
    /// It cannot be said which one is meant.
    #[error(transparent)]
    Choice(#[from] ModelChoiceError),
    /// Its provider's address or headers cannot be used.
    #[error("{}", .0.message)]
    Provider(ModelError),
}
