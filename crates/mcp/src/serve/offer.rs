//! What a server offers, in words that know nothing of the protocol.

use std::fmt;

use async_trait::async_trait;
use convoke_core::{Kind, ToolResult, ToolSpec};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::progress::ProgressSink;

/// Tools that clients may call.
#[async_trait]
pub trait Offer: Send + Sync + 'static {
    /// Returns the tools there are now. The same tools come in the same order.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Returns one of them.
    fn tool(&self, name: &str) -> Option<ToolSpec> {
        self.tools().into_iter().find(|spec| spec.name == name)
    }

    /// Returns a number that becomes another one when the tools have changed. It may do so more often:
    /// clients are told only where the tools are others than before.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Tells whether a call may take so long that a client would rather ask for its result later. By
    /// default that is so for agents.
    fn takes_long(&self, spec: &ToolSpec) -> bool {
        spec.kind == Kind::Agent
    }

    /// Carries out a call from beginning to end. When the handle's token is cancelled, it has a moment
    /// to stop what it started.
    async fn call(&self, name: &str, arguments: Value, handle: CallHandle) -> ToolResult;

    /// Puts in order what calls left behind. A server has stopped, and none of its calls is under way; another
    /// server of the same offer may go on.
    async fn finish(&self) {}
}

/// What ties a call to the client that made it.
#[derive(Clone)]
pub struct CallHandle {
    /// Cancelled when the call has to stop: its client took it back or is gone, or its time is over.
    pub cancellation: CancellationToken,
    /// Where the call tells how far it is.
    pub progress: ProgressSink,
}

impl fmt::Debug for CallHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stopped = self.cancellation.is_cancelled();
        formatter.debug_struct("CallHandle").field("stopped", &stopped).finish_non_exhaustive()
    }
}
