//! Tavily: one POST, at most twenty results.

use async_trait::async_trait;
use convoke_core::ToolError;
use convoke_tool::ToolContext;
use serde::Deserialize;
use serde_json::json;

use super::endpoint::{Endpoint, Question};
use super::provider::{SearchProvider, SearchQuery, SearchResult};

const MAX_RESULTS: usize = 20;

/// Searches with Tavily.
#[derive(Debug)]
pub(super) struct Tavily(Endpoint);

impl Tavily {
    pub(super) const fn new(endpoint: Endpoint) -> Self {
        Self(endpoint)
    }
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    title: String,
    url: String,
    #[serde(default)]
    content: String,
    published_date: Option<String>,
}

#[async_trait]
impl SearchProvider for Tavily {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn host(&self) -> Option<String> {
        Some(self.0.base.place())
    }

    async fn search(
        &self,
        query: &SearchQuery,
        context: &ToolContext,
    ) -> Result<Vec<SearchResult>, ToolError> {
        let bearer = format!("Bearer {}", self.0.exposed_key());
        let question = Question {
            path: "search",
            headers: &[("authorization", &bearer)],
            body: Some(json!({
                "query": query.text,
                "max_results": query.limit.min(MAX_RESULTS),
            })),
            ..Question::default()
        };
        let answer: Answer = self.0.ask_json(question, context).await?;
        let results = answer.results.into_iter().map(|item| SearchResult {
            title: item.title,
            url: item.url,
            snippet: item.content,
            published: item.published_date,
            source: self.0.name.into(),
        });
        Ok(results.collect())
    }
}
