//! Tools of MCP servers, as the command names and finds them.

use std::time::Duration;

use convoke::mcp::client::McpTool;
use convoke::{ListedServer, McpServers, Runtime};
use convoke_core::nearest::{did_you_mean, nearest};
use convoke_core::{Category, SERVER_TOOL_PREFIX, ToolSpec};
use convoke_tool::Tool;

use super::super::mcp::{Looked, end_all, look_at};
use super::super::run::watch::threads;
use crate::failure::{self, Failure};
use crate::output::Output;

/// How long a server may take that is asked only because it never was.
const SHORT: Duration = Duration::from_secs(5);
/// How long one may take that is needed.
const LONG: Duration = Duration::from_mins(1);

/// Returns the server that a tool belongs to.
pub(super) fn server_of(spec: &ToolSpec, runtime: &Runtime) -> Option<String> {
    let servers = runtime.mcp().filter(|_| spec.category == Category::Mcp)?;
    let tools = servers.servers().tools();
    let tool = tools.iter().find(|tool| tool.spec().name == spec.name)?;
    Some(tool.server().to_owned())
}

/// Servers that were started, until they are not needed any more: what they offer goes with them.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Started(Option<tokio::runtime::Runtime>);

impl Started {
    /// Ends them.
    pub(super) fn end(self, runtime: &Runtime) {
        if let Some(threads) = self.0 {
            end_all(runtime, &threads);
            threads.shutdown_timeout(Duration::from_millis(200));
        }
    }
}

/// Asks servers for their tools: those that never were, or all.
pub(super) fn ask(runtime: &Runtime, all: bool, output: &mut Output) -> Result<Started, Failure> {
    let Some(servers) = runtime.mcp() else { return Ok(Started::default()) };
    let statuses = servers.servers().status().into_iter();
    let wanted = statuses.filter(|status| status.enabled && (all || status.asked.is_none()));
    let names: Vec<String> = wanted.map(|status| status.name).collect();
    if names.is_empty() {
        return Ok(Started::default());
    }
    if !all && !output.is_quiet() {
        let line = format!("asking {} for tools, for the first time", names.join(", "));
        output.err.line(output.err.printable(&line));
    }
    let threads = threads()?;
    let patience = if all { LONG } else { SHORT };
    for Looked { name, result, .. } in threads.block_on(look_at(names, servers, patience))? {
        if let Err(error) = result {
            failure::doubt(output, &runtime.secrets().hide(&error.message));
            failure::hint(output, &format!("`convoke mcp test {name}` says more"));
        }
    }
    servers.servers().introduce(runtime.registry());
    Ok(Started(Some(threads)))
}

/// Returns the name that a tool is known by, as far as it is known what servers offer. None is started.
pub(in crate::commands) fn known_name(name: &str, runtime: &Runtime) -> Result<String, Failure> {
    let servers = runtime.mcp().filter(|_| !runtime.registry().has(name));
    let Some(servers) = servers else { return Ok(name.to_owned()) };
    let Some((server, tool)) = split(name, servers) else { return Ok(name.to_owned()) };
    match find(&server, &tool, name, servers) {
        Some(known) => Ok(known),
        None if name.starts_with(SERVER_TOOL_PREFIX) => Ok(name.to_owned()),
        None => {
            Err(Failure::usage(format!("no tool `{tool}` of the MCP server `{server}` is known"))
                .hint(format!("`convoke mcp tools {server}` asks it, and shows them all")))
        }
    }
}

/// Returns the name that a tool is known by, and asks its server for it if need be.
pub(super) fn known_as(
    name: &str,
    runtime: &Runtime,
    output: &Output,
) -> Result<(String, Started), Failure> {
    let threads = threads()?;
    let known = brought(name, runtime, &threads, output);
    let known = known.inspect_err(|_| end_all(runtime, &threads))?;
    Ok((known, Started(Some(threads))))
}

/// The same, where the server is needed afterwards.
pub(super) fn brought(
    name: &str,
    runtime: &Runtime,
    threads: &tokio::runtime::Runtime,
    output: &Output,
) -> Result<String, Failure> {
    let Some(servers) = runtime.mcp() else { return Ok(name.to_owned()) };
    if runtime.registry().has(name) {
        return Ok(name.to_owned());
    }
    let Some((server, tool)) = split(name, servers) else { return Ok(name.to_owned()) };
    if let Some(known) = find(&server, &tool, name, servers) {
        return Ok(known);
    }
    if servers.listed().iter().any(|one| one.config.name == server && !one.config.enabled) {
        return Err(Failure::usage(format!("the MCP server `{server}` is switched off"))
            .hint(format!("`convoke mcp enable {server}` switches it on")));
    }
    if !output.is_quiet() {
        output.err.line(format_args!("starting {server}"));
    }
    let looked = threads.block_on(look_at(vec![server.clone()], servers, LONG))?;
    for looked in looked {
        looked.result.map_err(|error| {
            Failure::failed(runtime.secrets().hide(&error.message))
                .hint(format!("`convoke mcp test {server}` says more"))
        })?;
    }
    servers.servers().introduce(runtime.registry());
    find(&server, &tool, name, servers).ok_or_else(|| {
        let tools = servers.servers().tools();
        let own = tools.iter().filter(|tool| tool.server() == server).map(McpTool::name);
        let close = did_you_mean(&nearest(&tool, own));
        Failure::usage(format!("the MCP server `{server}` has no tool `{tool}`{close}"))
            .hint(format!("`convoke mcp tools {server}` shows them all"))
    })
}

/// Splits `server.tool`, or `mcp__server__tool`, if there is such a server.
fn split(name: &str, servers: &McpServers) -> Option<(String, String)> {
    let listed = servers.listed().iter();
    let of = |listed: &ListedServer| {
        let server = listed.config.name.as_str();
        let dotted = name.strip_prefix(server).and_then(|rest| rest.strip_prefix('.'));
        let known = || name.strip_prefix(&listed.config.names_begin());
        let tool = dotted.or_else(known).filter(|tool| !tool.is_empty())?;
        Some((server.to_owned(), tool.to_owned()))
    };
    // Of `a` and `a.b`, the longer one is meant.
    listed.filter_map(of).max_by_key(|(server, _)| server.len())
}

/// Finds a tool by what its server calls it, or by what models do.
fn find(server: &str, tool: &str, name: &str, servers: &McpServers) -> Option<String> {
    let tools = servers.servers().tools();
    let mut own = tools.iter().filter(|one| one.server() == server);
    let found = own.find(|one| one.name() == tool || one.spec().name == name)?;
    Some(found.spec().name.clone())
}
