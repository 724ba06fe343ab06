//! `web_search`: asks a search engine and gives back its results in one shape.
//!
//! Which engine is asked, and with which key, comes from the settings; the model only says what to look
//! for. The tool exists whatever the settings are: where something is missing, a call says which
//! setting that is. The key leaves this module in requests only. It is taken out of every error, also
//! where an engine repeats it.
//!
//! Requests go through the HTTP client and its rules. A base address from the settings is trusted,
//! because whoever wrote it could have allowed it.

mod bing;
mod duckduckgo;
mod endpoint;
mod google;
mod provider;
mod secret;
mod settings;
mod tavily;

use std::sync::Arc;

use convoke_core::{Category, Effects, Kind, Repeat, Resource, ToolError};
use convoke_tool::{FunctionTool, Rendered, Tool, ToolContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::network::HttpClient;

pub use provider::{SearchProvider, SearchQuery, SearchResult};
pub use settings::{SearchEngine, WebSearchSettings};

/// Returns the tool that searches with what the settings name.
pub fn tool(client: HttpClient, settings: WebSearchSettings) -> Arc<dyn Tool> {
    let max_results = settings.max_results;
    make(settings.connect(client), max_results)
}

/// Returns the tool that searches with a provider of your own.
pub fn tool_with(provider: Arc<dyn SearchProvider>, max_results: usize) -> Arc<dyn Tool> {
    make(Ok(provider), max_results)
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// What to search for.
    query: String,
    /// How many results to return at most.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

/// What was found.
#[derive(Serialize, JsonSchema)]
struct Found {
    /// The results, best first.
    results: Vec<SearchResult>,
}

fn make(provider: Result<Arc<dyn SearchProvider>, ToolError>, max_results: usize) -> Arc<dyn Tool> {
    let host = provider.as_ref().ok().and_then(|provider| provider.host());
    let reads: Vec<Resource> = host.map(Resource::Host).into_iter().collect();
    let search = move |arguments: Arguments, context: ToolContext| {
        let provider = provider.clone();
        async move { search(provider?.as_ref(), arguments, max_results, &context).await }
    };
    let tool = FunctionTool::new(
        "web_search",
        "Searches the web and returns titles, URLs and snippets of the best results. \
         Use http_get to read a page.",
        search,
    )
    .kind(Kind::Fetch)
    .category(Category::Network)
    .repeat(Repeat::Idempotent)
    .describe(|arguments| format!("search the web for {:?}", arguments.query))
    .effects(move |_| Effects { reads: reads.clone(), writes: Vec::new() });
    Arc::new(tool)
}

async fn search(
    provider: &dyn SearchProvider,
    arguments: Arguments,
    max_results: usize,
    context: &ToolContext,
) -> Result<Rendered<Found>, ToolError> {
    let text = arguments.query.trim();
    if text.is_empty() {
        return Err(ToolError::validation(["`query` must not be empty"]));
    }
    let limit = match arguments.limit {
        Some(0) => return Err(ToolError::validation(["`limit` must be at least 1"])),
        Some(limit) => limit.min(max_results),
        None => max_results,
    };
    let query = SearchQuery { text: text.to_owned(), limit };
    let mut results = provider.search(&query, context).await?;
    results.truncate(limit);
    let text = render(&query.text, &results);
    Ok(Rendered::new(Found { results }, text))
}

/// Writes the results for a model: a numbered list.
fn render(query: &str, results: &[SearchResult]) -> String {
    if results.is_empty() {
        return format!("No results for {query:?}.");
    }
    let mut lines = Vec::new();
    for (number, result) in (1..).zip(results) {
        let date = result.published.as_ref().map(|date| format!(" ({date})")).unwrap_or_default();
        lines.push(format!("{number}. {}{date}", result.title));
        lines.push(format!("   {}", result.url));
        if !result.snippet.is_empty() {
            lines.push(format!("   {}", result.snippet));
        }
    }
    lines.join("\n")
}
