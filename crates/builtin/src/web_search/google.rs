//! Google Programmable Search: pages of ten, and never more than the first hundred results.

use async_trait::async_trait;
use convoke_core::ToolError;
use convoke_tool::ToolContext;
use serde::Deserialize;
use serde_json::Value;

use super::endpoint::{Endpoint, Question};
use super::provider::{SearchProvider, SearchQuery, SearchResult};

const PAGE: usize = 10;
const MAX_RESULTS: usize = 100;

/// Searches with Google.
#[derive(Debug)]
pub(super) struct Google {
    endpoint: Endpoint,
    engine_id: String,
}

impl Google {
    pub(super) fn new(endpoint: Endpoint, engine_id: &str) -> Self {
        Self { endpoint, engine_id: engine_id.to_owned() }
    }

    /// Asks for results from the `start`th on; the first is number one.
    async fn page(
        &self,
        text: &str,
        start: usize,
        count: usize,
        context: &ToolContext,
    ) -> Result<Vec<Item>, ToolError> {
        let (start, count) = (start.to_string(), count.to_string());
        let question = Question {
            path: "customsearch/v1",
            query: &[
                ("key", self.endpoint.exposed_key()),
                ("cx", &self.engine_id),
                ("q", text),
                ("num", &count),
                ("start", &start),
            ],
            ..Question::default()
        };
        let answer: Answer = self.endpoint.ask_json(question, context).await?;
        Ok(answer.items)
    }
}

/// A page without results has no items at all.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    title: String,
    link: String,
    #[serde(default)]
    snippet: String,
    #[serde(default)]
    pagemap: Value,
}

impl Item {
    /// Pages say when they were published in their own metadata, if they do.
    fn published(&self) -> Option<String> {
        let tags = self.pagemap.get("metatags")?.get(0)?;
        tags.get("article:published_time")?.as_str().map(str::to_owned)
    }
}

#[async_trait]
impl SearchProvider for Google {
    fn name(&self) -> &'static str {
        self.endpoint.name
    }

    fn host(&self) -> Option<String> {
        Some(self.endpoint.base.place())
    }

    async fn search(
        &self,
        query: &SearchQuery,
        context: &ToolContext,
    ) -> Result<Vec<SearchResult>, ToolError> {
        let wanted = query.limit.min(MAX_RESULTS);
        let mut results = Vec::new();
        while results.len() < wanted {
            let count = (wanted - results.len()).min(PAGE);
            let items = self.page(&query.text, results.len() + 1, count, context).await?;
            let last_page = items.len() < count;
            results.extend(items.into_iter().map(|item| SearchResult {
                published: item.published(),
                title: item.title,
                url: item.link,
                snippet: item.snippet,
                source: self.endpoint.name.into(),
            }));
            if last_page {
                break;
            }
        }
        Ok(results)
    }
}
