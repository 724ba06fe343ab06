//! Tools of MCP servers that agents name, and of which there is no server.
//!
//! Files of agents are shared between people who have different servers. A tool of a server that is not
//! configured is left out of an agent, which stays usable, and said; any other tool that there is not is a
//! mistake in the file.

use std::collections::BTreeMap;

use convoke_agent::AgentOverride;
use convoke_agent::definition::ToolChoice;
use convoke_agent::files::{FileNote, Loaded};

use super::Runtime;
use crate::config::Config;

/// How the names of servers' tools begin, and what stands between the server and the tool. Gemini CLI has one
/// underscore.
const SPELLINGS: [(&str, &str); 2] = [("mcp__", "__"), ("mcp_", "_")];

impl Runtime {
    /// Takes the tools out of an agent whose servers are not configured, and adds a warning for each.
    pub fn without_missing_servers(&self, loaded: &mut Loaded) {
        without_missing_servers(loaded, &self.config);
    }
}

/// Takes the tools out of an agent whose servers are not configured, and adds a warning for each.
pub(super) fn without_missing_servers(loaded: &mut Loaded, config: &Config) {
    let Some(tools) = &mut loaded.definition.tools.allow else { return };
    let mut missing = Vec::new();
    tools.retain(|tool| match tool {
        ToolChoice::Named(name) => match no_server_of(name, config) {
            Some(why) => {
                missing.push(format!("`{name}` is left out: {why}"));
                false
            }
            None => true,
        },
        _ => true,
    });
    let line = loaded.lines.first(&["tools"]).map(|(_, line)| line);
    loaded.warnings.extend(missing.into_iter().map(|message| FileNote {
        line,
        key: Some("tools".to_owned()),
        ..FileNote::new(&loaded.source.path, message)
    }));
}

/// Does the same for what settings say about agents, and returns what there is to know about it.
pub(super) fn without_servers_of_overrides(
    overrides: &mut BTreeMap<String, AgentOverride>,
    config: &Config,
) -> Vec<String> {
    let mut missing = Vec::new();
    for (agent, own) in overrides {
        let Some(tools) = &mut own.tools else { continue };
        tools.retain(|name| match no_server_of(name, config) {
            Some(why) => {
                missing.push(format!("`{name}` is left out of `{agent}`: {why}"));
                false
            }
            None => true,
        });
    }
    missing
}

/// Says why there is no server for a tool, if it is a server's and there is none.
fn no_server_of(tool: &str, config: &Config) -> Option<String> {
    let spelled = |(prefix, gap)| Some((tool.strip_prefix(prefix)?, gap));
    let (name, gap): (&str, &str) = SPELLINGS.into_iter().find_map(spelled)?;
    let servers = &config.tools.mcp_servers;
    let is_of = |server: &str| {
        name.strip_prefix(server).is_some_and(|rest| rest.is_empty() || rest.starts_with(gap))
    };
    match servers.iter().find(|server| is_of(&server.name)) {
        Some(server) if server.enabled => None,
        Some(server) => Some(format!("the server `{}` is switched off", server.name)),
        None => match name.split(gap).next().unwrap_or(name) {
            // A pattern may stand for tools of any server.
            server if server.contains('*') && !servers.is_empty() => None,
            server if server.contains('*') => Some("no server is configured".to_owned()),
            server => Some(format!("no server named `{server}` is configured")),
        },
    }
}
