//! `DuckDuckGo`: the page for browsers without scripts, one page of results, no key.
//!
//! If `DuckDuckGo` takes us for a robot, it answers with a puzzle instead of results, and the search
//! says so rather than finding nothing.

mod html;
mod page;

use async_trait::async_trait;
use convoke_core::ToolError;
use convoke_tool::ToolContext;

use self::page::{Hit, Page};
use super::endpoint::{Endpoint, Question};
use super::provider::{SearchProvider, SearchQuery, SearchResult};

/// The status of an answer that is a puzzle.
const ACCEPTED: u16 = 202;

/// Searches with `DuckDuckGo`.
#[derive(Debug)]
pub(super) struct DuckDuckGo(Endpoint);

impl DuckDuckGo {
    pub(super) const fn new(endpoint: Endpoint) -> Self {
        Self(endpoint)
    }
}

#[async_trait]
impl SearchProvider for DuckDuckGo {
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
        let question =
            Question { path: "html/", query: &[("q", &query.text)], ..Question::default() };
        let response = self.0.ask(question, context).await?;
        let html = response.text();
        let page = Page::read(&html);
        if page.hits.is_empty() && (page.puzzle || response.status.as_u16() == ACCEPTED) {
            return Err(ToolError::unavailable(
                "duckduckgo wants proof that no robot is asking; try again later, or set \
                 tools.webSearch.provider to an engine with a key",
            ));
        }
        let results = page.hits.into_iter().map(|Hit { title, url, snippet }| SearchResult {
            title,
            url,
            snippet,
            published: None,
            source: self.0.name.into(),
        });
        Ok(results.collect())
    }
}
