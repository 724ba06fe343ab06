//! What a run needs to know about the place it works in, where that is its own.

use std::fmt::Debug;

use async_trait::async_trait;
use convoke_core::{WorkspacePlace, WorkspaceReport};

/// A place of its own in which a run works. Its making is somebody else's business.
#[async_trait]
pub trait Workplace: Send + Sync + Debug {
    /// Returns where it is.
    fn place(&self) -> WorkspacePlace;

    /// Returns what there is to know about it.
    fn notes(&self) -> Vec<String>;

    /// Finds out what is not what it was, or says why that cannot be found out.
    async fn changes(&self) -> Result<WorkspaceReport, String>;
}
