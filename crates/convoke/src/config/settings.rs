//! The whole configuration as one value. Its `Default` is the built-in layer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use convoke_core::{ModelFacts, ReflectionMode, RunSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent::AgentConfig;
use super::agents::AgentsConfig;
use super::budget::BudgetConfig;
use super::entry::ProjectEntry;
use super::hook::{Author, HookConfig};
use super::mcp::McpServerConfig;
use super::model::ModelConfig;
use super::origin::{Layer, Origin};
use super::permission::PolicyConfig;
use super::sandbox::SandboxConfig;
use super::tools::ToolsConfig;

/// Settings of the Convoke agent runtime, as written in `convoke.yml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "Convoke configuration")]
#[non_exhaustive]
pub struct Config {
    /// Models: which is asked, where it is, and how it is to answer.
    pub model: ModelConfig,
    /// Tools: which there are, what they may reach and how much they may take.
    pub tools: ToolsConfig,
    /// Agents: how a run goes about its task.
    pub agent: AgentConfig,
    /// Agents that a run may call: which there are, and how they are reached.
    pub agents: AgentsConfig,
    /// What a run may use. A project's file can only lower what the user allows.
    pub budget: BudgetConfig,
    /// What may happen without asking, with asking, and not at all.
    pub policy: PolicyConfig,
    /// How programs are confined.
    pub sandbox: SandboxConfig,
    /// Commands that are told what happens and may have a say, in this order. A project's come after the
    /// user's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookConfig>,
    /// Where the hooks come from, in their order; the user where nobody said.
    #[serde(skip)]
    pub(crate) hook_origins: Vec<Origin>,
    /// Where the MCP servers come from, in their order; the user where nobody said.
    #[serde(skip)]
    pub(crate) server_origins: Vec<Origin>,
    /// Where the files with MCP servers come from, in their order; the user where nobody said.
    #[serde(skip)]
    pub(crate) server_file_origins: Vec<Origin>,
    /// The names of MCP servers that are left out for a variable that is not set. No project gets them.
    #[serde(skip)]
    pub(crate) servers_left_out: BTreeSet<String>,
    /// The names of MCP servers that the user switched off, whoever wrote them down.
    #[serde(skip)]
    pub(crate) servers_switched_off: BTreeSet<String>,
    /// The entries of the project's file, where each is trusted by itself; those that are not are left out.
    #[serde(skip)]
    pub(crate) project_entries: Vec<ProjectEntry>,
}

impl Config {
    /// Returns the hooks, each with who wrote it.
    pub fn hooks_by_author(&self) -> impl Iterator<Item = (&HookConfig, Author)> {
        self.hooks.iter().zip(authors(&self.hook_origins))
    }

    /// Returns the MCP servers, each with whose it is: the user's stays the user's where a project only uses
    /// less of it.
    pub fn servers_by_author(&self) -> impl Iterator<Item = (&McpServerConfig, Author)> {
        self.tools.mcp_servers.iter().zip(authors(&self.server_origins))
    }

    /// Returns the files with MCP servers, each with who listed it.
    pub fn server_files_by_author(&self) -> impl Iterator<Item = (&Path, Author)> {
        let files = self.tools.mcp_files.iter().map(PathBuf::as_path);
        files.zip(authors(&self.server_file_origins))
    }

    /// Returns every value that is marked as secret, with the key it is set by.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (String, String)> {
        let providers = self.model.providers.iter().flat_map(|(name, provider)| {
            let key =
                provider.key.iter().map(move |key| (format!("model.providers.{name}.key"), key));
            let headers = provider.headers.iter().map(move |(header, value)| {
                (format!("model.providers.{name}.headers.{header}"), value)
            });
            key.chain(headers)
        });
        let commands = self.tools.commands.iter().flat_map(|command| {
            let name = &command.name;
            let env = command.env.iter();
            env.map(move |(variable, value)| {
                (format!("tools.commands.{name}.env.{variable}"), value)
            })
        });
        let search = self.tools.web_search.api_key.iter();
        let search = search.map(|key| ("tools.webSearch.apiKey".to_owned(), key));
        let servers = self.tools.mcp_servers.iter().flat_map(|server| {
            let key = move |rest: String| format!("tools.mcpServers.{}.{rest}", server.name);
            let env =
                server.env.iter().map(move |(name, value)| (key(format!("env.{name}")), value));
            let headers = server.headers.iter();
            let headers = headers.map(move |(name, value)| (key(format!("headers.{name}")), value));
            let client = server.auth.iter().filter_map(|auth| auth.client_secret.as_ref());
            let client = client.map(move |secret| (key("auth.clientSecret".to_owned()), secret));
            env.chain(headers).chain(client)
        });
        let all = providers.chain(commands).chain(search).chain(servers);
        all.map(|(name, secret)| (name, secret.expose().to_owned()))
    }

    /// Returns the settings of a run with a model of which this is known.
    pub fn run_settings(&self, model: ModelFacts) -> RunSettings {
        RunSettings {
            budget: self.budget.budget(),
            strategy: self.agent.strategy,
            reflection: self
                .agent
                .reflection
                .unwrap_or_else(|| ReflectionMode::default_for(self.agent.strategy)),
            model,
            max_repeats: self.agent.max_repeats,
            on_stuck: self.agent.on_stuck,
            max_rescues: self.agent.max_rescues,
            compact_at_percent: self.agent.compact_at,
            ..RunSettings::default()
        }
    }
}

/// Returns who wrote the items of a list, and the user for all that follow.
fn authors(origins: &[Origin]) -> impl Iterator<Item = Author> {
    let author = |origin: &Origin| match origin.layer {
        Layer::Project => Author::Project,
        _ => Author::User,
    };
    origins.iter().map(author).chain(std::iter::repeat(Author::User))
}

/// Keys that are other spellings of a key: alias first.
pub(crate) const ALIASES: &[(&str, &str)] = &[("agent.maxConcurrentTools", "tools.maxConcurrent")];
