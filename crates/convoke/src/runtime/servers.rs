//! Tools of MCP servers that agents name: as they are called here, or left out where there is no such server.
//!
//! Files of agents are shared between people who have different servers. A tool of a server that is not
//! configured is left out of an agent, which stays usable, and said; any other tool that there is not is a
//! mistake in the file. This is the same for every way in which files are written.

use std::collections::BTreeMap;

use convoke_agent::AgentOverride;
use convoke_agent::definition::{AgentDefinition, ToolChoice};
use convoke_agent::files::{AgentFormat, AgentSource, FileNote, KeyLines, LoadReport};
use convoke_mcp::client::ServerConfig;

use super::Runtime;

/// How the names of servers' tools begin, and what stands between the server and the tool. The first is how they
/// are called here; other tools have one underscore.
const SPELLINGS: [(&str, &str); 2] = [("mcp__", "__"), ("mcp_", "_")];

/// What a name stands for that is one of a server's tool.
enum Meant {
    /// This, as it is called here.
    Tool(String),
    /// Nothing, for this reason.
    Nothing(String),
}

impl Runtime {
    /// Takes the tools out of agents whose servers are not configured, and adds a warning for each. Those that
    /// are there get the names that they have here.
    pub fn settle_servers(&self, report: &mut LoadReport) {
        let shadowed = report.shadowed.iter_mut().map(|shadowed| &mut shadowed.left_out);
        for loaded in report.loaded.iter_mut().chain(shadowed) {
            let (source, lines) = (&loaded.source, &loaded.lines);
            let mut notes = self.settle_tools(&mut loaded.definition, source, lines);
            notes.extend(loaded.switched_on.iter().filter_map(|(name, line)| {
                let why = self.missing_server(&format!("mcp_{name}"))?;
                Some(left_out(name, &why, Some(*line), source))
            }));
            loaded.warnings.extend(notes);
        }
        for draft in &mut report.drafts {
            if let Some(definition) = &mut draft.definition {
                let notes = self.settle_tools(definition, &draft.source, &draft.lines);
                report.warnings.extend(notes);
            }
        }
    }

    fn settle_tools(
        &self,
        definition: &mut AgentDefinition,
        source: &AgentSource,
        lines: &KeyLines,
    ) -> Vec<FileNote> {
        let Some(tools) = &mut definition.tools.allow else { return Vec::new() };
        let line = lines.first(&["tools", "permission"]).map(|(_, line)| line);
        let mut missing = Vec::new();
        tools.retain_mut(|tool| {
            let ToolChoice::Named(name) = tool else { return true };
            match self.server_tool(name) {
                Some(Meant::Nothing(why)) => {
                    missing.push(left_out(written(name, source), &why, line, source));
                    return false;
                }
                Some(Meant::Tool(here)) => *name = here,
                None => {}
            }
            true
        });
        missing
    }

    /// Does the same for what settings say about agents, and returns what there is to know about it.
    pub(super) fn settle_overrides(
        &self,
        overrides: &mut BTreeMap<String, AgentOverride>,
    ) -> Vec<String> {
        let mut missing = Vec::new();
        for (agent, own) in overrides {
            let Some(tools) = &mut own.tools else { continue };
            tools.retain_mut(|name| match self.server_tool(name) {
                Some(Meant::Nothing(why)) => {
                    missing.push(format!("`{name}` is left out of `{agent}`: {why}"));
                    false
                }
                Some(Meant::Tool(here)) => {
                    *name = here;
                    true
                }
                None => true,
            });
        }
        missing
    }

    fn missing_server(&self, tool: &str) -> Option<String> {
        match self.server_tool(tool)? {
            Meant::Nothing(why) => Some(why),
            Meant::Tool(_) => None,
        }
    }

    /// Says what a name stands for, if it is one of a server's tool.
    fn server_tool(&self, tool: &str) -> Option<Meant> {
        if self.registry.has(tool) {
            return None;
        }
        let spelled = |(prefix, gap)| Some((tool.strip_prefix(prefix)?, gap));
        let (name, gap): (&str, &str) = SPELLINGS.into_iter().find_map(spelled)?;
        let servers = self.mcp.as_ref().map(|mcp| mcp.listed()).unwrap_or_default();
        let servers = servers.iter().map(|listed| &listed.config);
        let of = |server: &ServerConfig| {
            // Odd names of servers are others in the names of their tools.
            if let Some(own) = tool.strip_prefix(&server.names_begin()) {
                return Some(own);
            }
            let rest = name.strip_prefix(server.name.as_str())?;
            if rest.is_empty() { Some("*") } else { rest.strip_prefix(gap) }
        };
        let of_server = servers.clone().filter_map(|server| Some((server, of(server)?)));
        // A server may be called as another begins.
        Some(match of_server.max_by_key(|(server, _)| server.name.len()) {
            Some((server, tool)) if server.enabled => {
                Meant::Tool(format!("{}{tool}", server.names_begin()))
            }
            Some((server, _)) => {
                Meant::Nothing(format!("the server `{}` is switched off", server.name))
            }
            None => match name.split(gap).next().unwrap_or(name) {
                // A pattern may stand for tools of any server.
                server if server.contains('*') && servers.count() > 0 => return None,
                server if server.contains('*') => {
                    Meant::Nothing("no server is configured".to_owned())
                }
                server => Meant::Nothing(format!("no server named `{server}` is configured")),
            },
        })
    }
}

/// Returns a name as it is in the file.
fn written<'n>(name: &'n str, source: &AgentSource) -> &'n str {
    match name.strip_prefix("mcp_") {
        Some(plain) if source.format == AgentFormat::OpenCode && !plain.starts_with('_') => plain,
        _ => name,
    }
}

fn left_out(name: &str, why: &str, line: Option<u64>, source: &AgentSource) -> FileNote {
    let message = format!("`{name}` is left out: {why}");
    FileNote { line, key: Some("tools".to_owned()), ..FileNote::new(&source.path, message) }
}
