//! The whole configuration as one value. Its `Default` is the built-in layer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::permission::PolicyConfig;
use super::tools::ToolsConfig;

/// Settings of the Convoke agent runtime, as written in `convoke.yml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "Convoke configuration")]
#[non_exhaustive]
pub struct Config {
    /// Tools: which there are, what they may reach and how much they may take.
    pub tools: ToolsConfig,
    /// Agents.
    pub agent: AgentConfig,
    /// What may happen without asking, with asking, and not at all.
    pub policy: PolicyConfig,
}

/// Settings of agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct AgentConfig {
    /// Another spelling of `tools.maxConcurrent`. Where one layer sets both, the smaller counts.
    ///
    /// A loaded configuration carries the value in `tools.maxConcurrent` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub max_concurrent_tools: Option<usize>,
}

/// Keys that are other spellings of a key: alias first.
pub(crate) const ALIASES: &[(&str, &str)] = &[("agent.maxConcurrentTools", "tools.maxConcurrent")];
