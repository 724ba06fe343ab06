//! Web search through the whole pipeline, against a server that answers like each search engine.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use convoke_builtin::network::{HttpClient, HttpSettings};
use convoke_builtin::web_search::{
    self, SearchEngine, SearchProvider, SearchQuery, SearchResult, WebSearchSettings,
};
use convoke_core::{
    Category, Effects, ErrorKind, Kind, Repeat, Resource, ToolCall, ToolError, ToolResult,
};
use convoke_tool::testing::Conformance;
use convoke_tool::{
    CallOptions, Decided, KindAuthorizer, Permission, Tool, ToolContext, ToolExecutor,
    ToolRegistry, ToolView,
};
use serde_json::{Value, json};

use crate::http_server::{Server, Step, answer, head, redirect};

mod engines;
mod refusals;

const KEY: &str = "sk/secret+key 1";

/// Searches at a server of ours; nothing else on this machine may be reached.
fn settings(engine: SearchEngine, server: &Server) -> WebSearchSettings {
    WebSearchSettings {
        provider: Some(engine),
        api_key: Some(KEY.into()),
        engine_id: Some("engine:1".into()),
        base_url: Some(server.url("")),
        ..WebSearchSettings::default()
    }
}

fn executor(tool: Arc<dyn Tool>) -> ToolExecutor {
    let registry = ToolRegistry::new();
    registry.register_many([tool]).unwrap();
    ToolExecutor::builder(ToolView::of(registry), ToolContext::builder("task").build())
        .authorizer(KindAuthorizer::new([(Kind::Fetch, Permission::Allow)]))
        .build()
}

fn tool(settings: WebSearchSettings) -> Arc<dyn Tool> {
    web_search::tool(HttpClient::new(HttpSettings::default()), settings)
}

async fn search(settings: WebSearchSettings, arguments: Value) -> ToolResult {
    let call = ToolCall::new("c", "web_search", arguments);
    let options = CallOptions::timeout(Duration::from_secs(20));
    executor(tool(settings)).execute_with(call, options).await
}

#[track_caller]
fn results(result: &ToolResult) -> &Value {
    &result.value().unwrap_or_else(|| panic!("{result:?}"))["results"]
}

#[track_caller]
fn fails(result: &ToolResult, kind: ErrorKind, says: &str) {
    let error = result.error().unwrap_or_else(|| panic!("it worked: {result:?}"));
    assert_eq!(error.kind, kind, "{error:?}");
    assert!(error.message.contains(says), "{error:?}");
}

fn json_answer(document: &Value) -> Vec<u8> {
    answer(200, &[("content-type", "application/json")], document.to_string())
}

/// Finds whatever it is asked for, as often as it is asked.
#[derive(Debug)]
struct Echo;

#[async_trait]
impl SearchProvider for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    async fn search(
        &self,
        query: &SearchQuery,
        _: &ToolContext,
    ) -> Result<Vec<SearchResult>, ToolError> {
        let result = |number: usize| SearchResult {
            title: format!("{} {number}", query.text),
            url: format!("https://a.example/{number}"),
            snippet: if number == 1 { "first".into() } else { String::new() },
            published: (number == 1).then(|| "2024-05-06".into()),
            source: format!("echo of {}", query.limit),
        };
        Ok((1..=50).map(result).collect())
    }
}

#[tokio::test]
async fn the_smaller_limit_counts() {
    let executor = executor(web_search::tool_with(Arc::new(Echo), 10));
    for (limit, expected) in [(json!(3), 3), (json!(10), 10), (json!(99), 10), (Value::Null, 10)] {
        let arguments = json!({ "query": " rust ", "limit": limit });
        let result = executor.execute(ToolCall::new("c", "web_search", arguments)).await;
        let found = results(&result).as_array().unwrap();
        assert_eq!(found.len(), expected, "{limit}");
        assert_eq!(found[0]["source"], format!("echo of {expected}"));
        assert_eq!(found[0]["title"], "rust 1");
    }
}

#[tokio::test]
async fn the_model_sees_a_list() {
    let executor = executor(web_search::tool_with(Arc::new(Echo), 2));
    let call = ToolCall::new("c", "web_search", json!({ "query": "rust" }));
    assert_eq!(
        executor.execute(call).await.text(),
        "1. rust 1 (2024-05-06)\n   https://a.example/1\n   first\n\
         2. rust 2\n   https://a.example/2"
    );
}

#[tokio::test]
async fn a_search_for_nothing_is_turned_down() {
    let executor = executor(web_search::tool_with(Arc::new(Echo), 10));
    for (arguments, says) in [
        (json!({ "query": "  \n" }), "`query` must not be empty"),
        (json!({ "query": "x", "limit": 0 }), "`limit`"),
        (json!({ "query": "x", "limit": -1 }), "`limit`"),
        (json!({ "limit": 1 }), "`query` is missing"),
    ] {
        let result = executor.execute(ToolCall::new("c", "web_search", arguments)).await;
        fails(&result, ErrorKind::Validation, says);
    }
}

#[tokio::test]
async fn the_tool_says_what_it_is_and_whom_it_asks() {
    let settings = WebSearchSettings {
        provider: Some(SearchEngine::DuckDuckGo),
        ..WebSearchSettings::default()
    };
    let tool = tool(settings);
    let spec = tool.spec();
    assert_eq!((spec.category, spec.kind), (Category::Network, Kind::Fetch));
    assert_eq!(spec.repeat, Repeat::Idempotent);
    let call = ToolCall::new("c", "web_search", json!({ "query": "x" }));
    let Decided::Ready(prepared) = executor(tool).prepare(call, CallOptions::default()).await
    else {
        panic!("not ready");
    };
    assert_eq!(prepared.description(), "search the web for \"x\"");
    let host = Resource::Host("html.duckduckgo.com:443".into());
    assert_eq!(*prepared.effects(), Effects { reads: vec![host], writes: Vec::new() });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tool_conforms() {
    let tool = web_search::tool_with(Arc::new(Echo), 10);
    let report = Conformance::new(tool).valid(json!({ "query": "rust", "limit": 2 })).run().await;
    assert!(report.passed(), "{report}");
}
