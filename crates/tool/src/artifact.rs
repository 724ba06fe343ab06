//! Where output that is too long for the model is kept in full.

use std::fmt::Debug;
use std::io;

use convoke_core::{Artifact, CallId};

/// Keeps whole outputs beside a run.
pub trait ArtifactStore: Send + Sync + Debug {
    /// Keeps `text` for a call. `Ok(None)` means that this store keeps nothing.
    fn keep(&self, call: &CallId, text: &str) -> io::Result<Option<Artifact>>;
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoArtifacts;

impl ArtifactStore for NoArtifacts {
    fn keep(&self, _: &CallId, _: &str) -> io::Result<Option<Artifact>> {
        Ok(None)
    }
}
