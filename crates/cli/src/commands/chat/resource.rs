//! `@server:uri` in a message: what an MCP server lets be read, shown to the model.

use std::time::Duration;

use convoke::Runtime;
use convoke_core::{Part, ToolError};

use super::mention::{Attached, Mentioned};
use crate::failure::Failure;

/// How long a server may take to hand something out, its start included.
const PATIENCE: Duration = Duration::from_mins(1);
/// The longest that is sent of one thing, images and documents included.
const MAX_BYTES: usize = 1024 * 1024;

/// Returns the names of the servers that things can be read from.
pub(super) fn servers(runtime: &Runtime) -> Vec<String> {
    let listed = runtime.mcp().into_iter().flat_map(|servers| servers.listed());
    let used = listed.filter(|listed| listed.config.enabled);
    used.map(|listed| listed.config.name.clone()).collect()
}

/// Reads something from its server, which is started for that if need be.
pub(super) async fn read(
    mentioned: &Mentioned,
    runtime: &Runtime,
) -> Result<Vec<Attached>, Failure> {
    let Mentioned { server, uri } = mentioned;
    let name = format!("{server}:{uri}");
    let cannot = |why: String| {
        Failure::failed(format!("`{name}` cannot be read"))
            .causes([why])
            .hint(format!("write `\\@{name}` if nothing is to be read"))
    };
    let Some(servers) = runtime.mcp() else {
        return Err(cannot("there are no MCP servers".to_owned()));
    };
    if let Some(why) = runtime.denies_reading(server) {
        return Err(cannot(why));
    }
    if uri.contains('{') && uri.contains('}') {
        let why = "it is to be filled in: write a value in the place of what stands in braces";
        return Err(cannot(why.to_owned()));
    }
    servers.attach();
    let reading = tokio::time::timeout(PATIENCE, servers.servers().read_resource(server, uri));
    let late = || ToolError::timeout(PATIENCE);
    let read = reading.await.unwrap_or_else(|_| Err(late()));
    let hidden = |error: ToolError| runtime.secrets().hide(&error.message).into_owned();
    let parts = read.map_err(|error| cannot(hidden(error)))?;
    if parts.is_empty() {
        return Err(cannot("there is nothing in it".to_owned()));
    }
    let mut left = MAX_BYTES;
    let mut attached = Vec::new();
    for part in parts {
        let bytes = match &part {
            Part::Media { data, .. } => data.len(),
            part => part.as_text().map_or(0, str::len),
        };
        let Some(rest) = left.checked_sub(bytes) else {
            return Err(cannot(
                "it is longer than 1 MiB; let the agent read it instead".to_owned(),
            ));
        };
        left = rest;
        let part = match part.as_text() {
            Some(text) => Part::text(format!("From the MCP server {server}:\n{text}")),
            None => part,
        };
        attached.push(Attached { name: name.clone(), part, bytes: bytes as u64 });
    }
    Ok(attached)
}
