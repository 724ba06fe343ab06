//! Bing: one GET, at most fifty results.

use async_trait::async_trait;
use convoke_core::ToolError;
use convoke_tool::ToolContext;
use serde::Deserialize;

use super::endpoint::{Endpoint, Question};
use super::provider::{SearchProvider, SearchQuery, SearchResult};

const MAX_RESULTS: usize = 50;

/// Searches with Bing.
#[derive(Debug)]
pub(super) struct Bing(Endpoint);

impl Bing {
    pub(super) const fn new(endpoint: Endpoint) -> Self {
        Self(endpoint)
    }
}

/// Without web pages among the results, the whole section is missing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    web_pages: Pages,
}

#[derive(Default, Deserialize)]
struct Pages {
    #[serde(default)]
    value: Vec<Page>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    name: String,
    url: String,
    #[serde(default)]
    snippet: String,
    date_published: Option<String>,
}

#[async_trait]
impl SearchProvider for Bing {
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
        let count = query.limit.min(MAX_RESULTS).to_string();
        let question = Question {
            path: "v7.0/search",
            query: &[("q", &query.text), ("count", &count)],
            headers: &[("ocp-apim-subscription-key", self.0.exposed_key())],
            ..Question::default()
        };
        let answer: Answer = self.0.ask_json(question, context).await?;
        let results = answer.web_pages.value.into_iter().map(|page| SearchResult {
            title: page.name,
            url: page.url,
            snippet: page.snippet,
            published: page.date_published,
            source: self.0.name.into(),
        });
        Ok(results.collect())
    }
}
