//! Starts servers and looks at what they offer, side by side, each for a while.

use std::future::Future;
use std::time::Duration;

use convoke::mcp::client::ServerStatus;
use convoke::{McpServers, Runtime};
use convoke_core::ToolError;
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::signals::Signals;

/// How long servers have to end before they are ended: longer than they get once their input is closed, and then once
/// they are told to.
const END_WITHIN: Duration = Duration::from_secs(5);

/// What came of looking at a server.
#[derive(Debug)]
pub(in crate::commands) struct Looked {
    /// Its name.
    pub(in crate::commands) name: String,
    /// How long that took.
    pub(in crate::commands) time: Duration,
    /// What is known of it now, or why not.
    pub(in crate::commands) result: Result<ServerStatus, ToolError>,
}

/// Looks at servers, all at once, each for as long as this.
pub(in crate::commands) async fn look_at(
    names: Vec<String>,
    servers: &McpServers,
    patience: Duration,
) -> Result<Vec<Looked>, Failure> {
    servers.attach();
    let look = async |name: String| {
        let begun = Instant::now();
        let looking = tokio::time::timeout(patience, servers.servers().look(&name));
        let result = if let Ok(result) = looking.await {
            result
        } else {
            let why = servers.servers().not_waited_for(&name).await;
            let message = format!("MCP server `{name}` could not be started: {why}");
            Err(ToolError { message, ..ToolError::timeout(patience) })
        };
        Looked { name, time: begun.elapsed(), result }
    };
    unless_stopped(join_all(names.into_iter().map(look))).await
}

/// Does something unless somebody wants the command to end.
pub(in crate::commands) async fn unless_stopped<T>(
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::failed("signals cannot be heard").because(&error))?;
    tokio::select! {
        done = work => Ok(done),
        cause = signals.next() => Err(Failure::new(cause, "stopped before it was done")),
    }
}

/// Ends all servers, as gently as they allow: one may have something to keep. Whoever does not want to wait need not.
pub(in crate::commands) async fn end(servers: &McpServers) {
    let ending = tokio::time::timeout(END_WITHIN, servers.servers().stop());
    // What does not end by itself is ended with the process.
    drop(unless_stopped(ending).await);
}

/// Ends the servers that a command has started.
pub(in crate::commands) fn end_all(runtime: &Runtime, threads: &tokio::runtime::Runtime) {
    if let Some(servers) = runtime.mcp() {
        threads.block_on(end(servers));
    }
}
