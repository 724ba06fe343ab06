//! The `tools` section: which tools there are, what they may reach, how much they may take.

use std::collections::BTreeMap;
use std::path::PathBuf;

use convoke_core::Category;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::CommandConfig;
use super::mcp::McpServerConfig;
use super::network::{HttpConfig, WebSearchConfig};
use super::schema::words;
use super::timeout::Timeout;

/// Tools: which there are, what they may reach and how much they may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ToolsConfig {
    /// How long one call may take, as `90s` or in milliseconds, where nothing closer says otherwise.
    pub timeout: Timeout,
    /// How long one call may take, by category and by tool.
    pub timeouts: TimeoutsConfig,
    /// How many calls of one run may be under way at once.
    #[schemars(range(min = 1, max = 1024))]
    pub max_concurrent: usize,
    /// Directories that file tools may touch, relative to the directory of the file that lists
    /// them; `~/` is the home directory. An empty list allows nothing; without the key it is the
    /// workspace. A project's file can only narrow what the user allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("items" = { "type": "string", "format": "path", "minLength": 1 }))]
    pub allowed_paths: Option<Vec<PathBuf>>,
    /// Names of the tools offered to a model, with `*` for any text; without the key, the default
    /// set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<Vec<String>>,
    /// Names of tools that are never offered, with `*` for any text. A project's file adds to the
    /// user's list.
    pub exclude: Vec<String>,
    /// How many bytes of one result a model sees.
    #[schemars(range(min = 256, max = 1_073_741_824))]
    pub max_output_bytes: usize,
    /// How many bytes the arguments of one call may have.
    #[schemars(range(min = 256, max = 1_073_741_824))]
    pub max_argument_bytes: usize,
    /// How many bytes of a file are read at most.
    #[schemars(range(min = 256, max = 1_073_741_824))]
    pub max_read_bytes: usize,
    /// Whether a file that did not change is read from memory the second time.
    pub read_cache: bool,
    /// Names of variables that programs get beside the usual ones (`PATH`, `HOME`, `LANG`, those of
    /// compilers and package managers…), with `*` for any text. One that looks like a credential has to
    /// be named in full. A project's file can only narrow what the user allows.
    pub environment: Vec<String>,
    /// HTTP requests.
    pub http: HttpConfig,
    /// Web search.
    pub web_search: WebSearchConfig,
    /// MCP servers whose tools are used. Those of a project's file come beside the user's, and none takes the
    /// name of the user's.
    pub mcp_servers: Vec<McpServerConfig>,
    /// Files with MCP servers as other programs write them (`mcpServers` or `servers`), relative to the
    /// directory of the file that lists them. Their programs run in the workspace. A trusted project's
    /// `.mcp.json` is read without being listed; what a project lists lies in the project, comes beside yours, and
    /// is as little believed.
    #[schemars(extend("items" = { "type": "string", "format": "path", "minLength": 1 }))]
    pub mcp_files: Vec<PathBuf>,
    /// About how many tokens of each request may tell a model of tools that are not built in. Where they
    /// would take more, the model gets a tool to look for them instead.
    #[schemars(range(max = 1_000_000))]
    pub max_listed_tokens: usize,
    /// Tools that run a command.
    pub commands: Vec<CommandConfig>,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            timeout: Timeout::from_millis(30_000),
            timeouts: TimeoutsConfig::default(),
            max_concurrent: 3,
            allowed_paths: None,
            enabled: None,
            exclude: Vec::new(),
            max_output_bytes: 64 * 1024,
            max_argument_bytes: 4 * 1024 * 1024,
            max_read_bytes: 16 * 1024 * 1024,
            read_cache: true,
            environment: Vec::new(),
            http: HttpConfig::default(),
            web_search: WebSearchConfig::default(),
            mcp_servers: Vec::new(),
            mcp_files: Vec::new(),
            max_listed_tokens: 2_000,
            commands: Vec::new(),
        }
    }
}

/// How long one call may take, by category and by tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TimeoutsConfig {
    /// How long, by category of tool.
    #[schemars(extend("propertyNames" = words(Category::ALL.iter().map(|word| word.as_str()))))]
    pub category: BTreeMap<Category, Timeout>,
    /// How long, by name of tool. This goes before the category and before what a tool says of
    /// itself.
    pub tool: BTreeMap<String, Timeout>,
}

impl Default for TimeoutsConfig {
    fn default() -> Self {
        let network = (Category::Network, Timeout::from_millis(60_000));
        Self { category: BTreeMap::from([network]), tool: BTreeMap::new() }
    }
}
