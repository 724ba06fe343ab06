//! What a search engine looks like from here.

use std::fmt::Debug;

use async_trait::async_trait;
use convoke_core::ToolError;
use convoke_tool::ToolContext;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    /// The words; never empty.
    pub text: String,
    /// How many results are wanted at most; at least one.
    pub limit: usize,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResult {
    /// Its title.
    pub title: String,
    /// Where it is.
    pub url: String,
    /// A passage of it.
    pub snippet: String,
    /// When it was published, as the search engine says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// The search engine that found it.
    pub source: String,
}

/// A search engine.
#[async_trait]
pub trait SearchProvider: Send + Sync + Debug {
    /// Returns its name, which results carry as their source.
    fn name(&self) -> &'static str;

    /// Returns the host it asks, for whoever decides whether that is allowed.
    fn host(&self) -> Option<String> {
        None
    }

    /// Searches. It may find fewer than wanted; what is beyond the limit is left out by the caller.
    async fn search(
        &self,
        query: &SearchQuery,
        context: &ToolContext,
    ) -> Result<Vec<SearchResult>, ToolError>;
}
