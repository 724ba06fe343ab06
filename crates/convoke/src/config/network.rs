//! Settings of the tools that talk to other machines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::secret::Secret;

/// HTTP requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct HttpConfig {
    /// Whether private addresses (this machine, the local network) may be reached. A project's
    /// file cannot switch this on.
    pub allow_private: bool,
    /// Hosts that may be reached although they are private, as `host` or `host:port`. A project's
    /// file cannot add to the user's list.
    pub allowed_hosts: Vec<String>,
    /// How many redirects are followed.
    #[schemars(range(max = 100))]
    pub max_redirects: usize,
    /// How many bytes of a response are read; the rest is cut off, and that is said.
    #[schemars(range(min = 256, max = 1_073_741_824))]
    pub max_body_bytes: usize,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            allow_private: false,
            allowed_hosts: Vec::new(),
            max_redirects: 10,
            max_body_bytes: 10 * 1024 * 1024,
        }
    }
}

/// Web search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct WebSearchConfig {
    /// Which search engine is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<WebSearchProvider>,
    /// The key for it; write `${NAME}` to take it from the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
    /// How many results are asked for at most.
    #[schemars(range(min = 1, max = 100))]
    pub max_results: usize,
    /// Where it is, if not at its usual address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^https?://"))]
    pub base_url: Option<String>,
    /// The search engine id (`cx`) that Google wants beside the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_id: Option<String>,
}

impl Default for WebSearchConfig {
    fn default() -> Self {
        Self { provider: None, api_key: None, max_results: 10, base_url: None, engine_id: None }
    }
}

/// A search engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WebSearchProvider {
    /// Tavily; wants a key.
    Tavily,
    /// Google; wants a key and an engine id.
    Google,
    /// Bing; wants a key.
    Bing,
    /// `DuckDuckGo`; wants nothing.
    Duckduckgo,
}
