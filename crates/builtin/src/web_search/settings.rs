//! Which search engine is asked, and what it needs for that.

use std::fmt;
use std::sync::Arc;

use convoke_core::ToolError;

use super::bing::Bing;
use super::duckduckgo::DuckDuckGo;
use super::endpoint::Endpoint;
use super::google::Google;
use super::provider::SearchProvider;
use super::secret::Secret;
use super::tavily::Tavily;
use crate::network::{HttpClient, HttpUrl};

/// A search engine that can be named in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SearchEngine {
    /// Tavily; wants a key.
    Tavily,
    /// Google Programmable Search; wants a key and an engine id.
    Google,
    /// Bing; wants a key.
    Bing,
    /// `DuckDuckGo`; wants nothing.
    DuckDuckGo,
}

impl SearchEngine {
    /// Every engine.
    pub const ALL: [Self; 4] = [Self::Tavily, Self::Google, Self::Bing, Self::DuckDuckGo];

    /// Returns the word it has in the configuration and in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tavily => "tavily",
            Self::Google => "google",
            Self::Bing => "bing",
            Self::DuckDuckGo => "duckduckgo",
        }
    }

    const fn default_base(self) -> &'static str {
        match self {
            Self::Tavily => "https://api.tavily.com",
            Self::Google => "https://www.googleapis.com",
            Self::Bing => "https://api.bing.microsoft.com",
            Self::DuckDuckGo => "https://html.duckduckgo.com",
        }
    }
}

impl fmt::Display for SearchEngine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// How the web is searched.
#[derive(Clone, PartialEq, Eq)]
pub struct WebSearchSettings {
    /// Which engine is asked.
    pub provider: Option<SearchEngine>,
    /// The key for it.
    pub api_key: Option<String>,
    /// The search engine id (`cx`) that Google wants beside the key.
    pub engine_id: Option<String>,
    /// Where it is, if not at its usual address.
    pub base_url: Option<String>,
    /// How many results are returned at most.
    pub max_results: usize,
}

impl Default for WebSearchSettings {
    fn default() -> Self {
        Self { provider: None, api_key: None, engine_id: None, base_url: None, max_results: 10 }
    }
}

impl fmt::Debug for WebSearchSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WebSearchSettings")
            .field("provider", &self.provider)
            .field("api_key", &self.key())
            .field("engine_id", &self.engine_id)
            .field("base_url", &self.base_url)
            .field("max_results", &self.max_results)
            .finish()
    }
}

impl WebSearchSettings {
    /// Returns the provider that is asked, or which setting is missing.
    pub(super) fn connect(self, client: HttpClient) -> Result<Arc<dyn SearchProvider>, ToolError> {
        let engine = self.provider.ok_or_else(|| {
            let names = SearchEngine::ALL.map(SearchEngine::as_str).join(", ");
            missing(format!(
                "no search engine is configured; set tools.webSearch.provider ({names})"
            ))
        })?;
        let key = || {
            self.key()
                .ok_or_else(|| missing(format!("{engine} needs a key; set tools.webSearch.apiKey")))
        };
        let endpoint = |key: Option<Secret>| self.endpoint(engine, key, client);
        Ok(match engine {
            SearchEngine::Tavily => Arc::new(Tavily::new(endpoint(Some(key()?))?)),
            SearchEngine::Google => {
                let key = key()?;
                let engine_id = self.engine_id.as_deref().map(str::trim).unwrap_or_default();
                if engine_id.is_empty() {
                    return Err(missing(
                        "google needs a search engine id; set tools.webSearch.engineId",
                    ));
                }
                Arc::new(Google::new(endpoint(Some(key))?, engine_id))
            }
            SearchEngine::Bing => Arc::new(Bing::new(endpoint(Some(key()?))?)),
            SearchEngine::DuckDuckGo => Arc::new(DuckDuckGo::new(endpoint(None)?)),
        })
    }

    fn key(&self) -> Option<Secret> {
        self.api_key.as_deref().and_then(Secret::new)
    }

    fn endpoint(
        &self,
        engine: SearchEngine,
        key: Option<Secret>,
        client: HttpClient,
    ) -> Result<Endpoint, ToolError> {
        let given = self.base_url.as_deref();
        let base = HttpUrl::parse(given.unwrap_or(engine.default_base())).map_err(|why| {
            ToolError::unavailable(format!("tools.webSearch.baseUrl cannot be used: {why}"))
        })?;
        let client = if given.is_some() { client.allowing(&base) } else { client };
        Ok(Endpoint { name: engine.as_str(), base, key, client })
    }
}

fn missing(message: impl Into<String>) -> ToolError {
    ToolError::unavailable(format!("web search is not set up: {}", message.into()))
}
