//! The HTTP tools, through the whole pipeline, against a server that misbehaves.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use convoke_builtin::network::{HttpClient, HttpSettings, tools};
use convoke_core::{
    CallOutcome, Category, ErrorKind, EventBody, Kind, Repeat, Resource, ToolCall, ToolResult,
};
use convoke_tool::testing::Conformance;
use convoke_tool::{
    Answer, Authorizer, CallOptions, Decided, Decision, KindAuthorizer, ManualClock, MemorySink,
    Permission, Recorder, Request, ToolContext, ToolExecutor, ToolRegistry, ToolView, ask_with,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::http_server::{Server, Step, answer, head, redirect};

mod body;
mod failure;
mod private;
mod redirects;

/// Long enough for everything that ends by itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// Everything on this machine may be reached.
fn open() -> HttpSettings {
    HttpSettings { allow_private: true, ..HttpSettings::default() }
}

fn builder(settings: HttpSettings, context: ToolContext) -> convoke_tool::ExecutorBuilder {
    let registry = ToolRegistry::new();
    registry.register_many(tools(HttpClient::new(settings))).unwrap();
    ToolExecutor::builder(ToolView::of(registry), context)
        .authorizer(KindAuthorizer::new([(Kind::Fetch, Permission::Allow)]))
}

fn executor(settings: HttpSettings) -> ToolExecutor {
    builder(settings, ToolContext::builder("task").build()).build()
}

async fn call_within(
    settings: HttpSettings,
    tool: &str,
    arguments: Value,
    timeout: Duration,
) -> ToolResult {
    let call = ToolCall::new("c1", tool, arguments);
    executor(settings).execute_with(call, CallOptions::timeout(timeout)).await
}

async fn call(settings: HttpSettings, tool: &str, arguments: Value) -> ToolResult {
    call_within(settings, tool, arguments, PATIENCE).await
}

async fn get(settings: HttpSettings, url: impl Into<String>) -> ToolResult {
    call(settings, "http_get", json!({ "url": url.into() })).await
}

#[track_caller]
fn value(result: &ToolResult) -> &Value {
    result.value().unwrap_or_else(|| panic!("{result:?}"))
}

#[track_caller]
fn fails(result: &ToolResult, kind: ErrorKind, says: &str) {
    let error = result.error().unwrap_or_else(|| panic!("it worked: {result:?}"));
    assert_eq!(error.kind, kind, "{error:?}");
    assert!(error.message.contains(says), "{error:?}");
}

#[tokio::test]
async fn get_returns_status_headers_and_body() {
    let headers = [("Content-Type", "text/plain"), ("X-Twice", "a"), ("x-twice", "b")];
    let server = Server::answering(answer(200, &headers, "hello")).await;
    let arguments = json!({ "url": server.url("/a?b=c#d"), "headers": { "X-Test": "yes" } });
    let result = call(open(), "http_get", arguments).await;
    assert_eq!(
        *value(&result),
        json!({
            "status": 200,
            "headers": {
                "connection": "close", "content-length": "5", "content-type": "text/plain",
                "x-twice": "a, b",
            },
            "body": "hello",
        })
    );
    assert_eq!(result.text(), "HTTP 200 OK\ncontent-type: text/plain\ncontent-length: 5\n\nhello");
    let request = server.only_request();
    assert_eq!((request.method.as_str(), request.target.as_str()), ("GET", "/a?b=c"));
    assert_eq!(request.header("x-test"), Some("yes"));
    assert_eq!(request.header("cookie"), None);
    assert_eq!(request.header("referer"), None);
    assert!(request.header("user-agent").unwrap().starts_with("convoke/"));
}

#[tokio::test]
async fn an_answer_that_says_no_is_an_answer() {
    for status in [301, 304, 404, 429, 500] {
        let server = Server::answering(answer(status, &[], "")).await;
        let result = get(open(), server.url("/")).await;
        assert_eq!(value(&result)["status"], status);
    }
}

#[tokio::test]
async fn post_sends_the_body_and_says_what_it_is() {
    for (body, headers, media_type) in [
        (json!("{\"a\": 1}"), json!({}), Some("application/json")),
        (json!("a=1&b=ü"), json!({}), Some("text/plain; charset=utf-8")),
        (json!("a=1"), json!({ "content-type": "x/y" }), Some("x/y")),
        (Value::Null, json!({}), None),
    ] {
        let server = Server::answering(answer(201, &[], "made")).await;
        let arguments = json!({ "url": server.url("/"), "body": body, "headers": headers });
        let result = call(open(), "http_post", arguments).await;
        assert_eq!(value(&result)["status"], 201);
        let request = server.only_request();
        assert_eq!(request.method, "POST");
        assert_eq!(request.body, body.as_str().unwrap_or_default());
        assert_eq!(request.header("content-type"), media_type);
    }
}

#[tokio::test]
async fn request_sends_any_method() {
    for method in ["GET", "put", "PATCH", "DELETE", "OPTIONS", "PROPFIND"] {
        let server = Server::answering(answer(200, &[], "ok")).await;
        let arguments = json!({ "method": method, "url": server.url("/"), "body": "x" });
        let result = call(open(), "http_request", arguments).await;
        assert_eq!(value(&result)["body"], "ok", "{method}");
        let request = server.only_request();
        assert_eq!((request.method, request.body), (method.to_uppercase(), "x".to_owned()));
    }
    let server = Server::answering(head(200, &[("content-length", "5")])).await;
    let result =
        call(open(), "http_request", json!({ "method": "HEAD", "url": server.url("/") })).await;
    assert_eq!(value(&result)["headers"]["content-length"], "5");
    assert_eq!(value(&result)["body"], "");
}

#[tokio::test]
async fn a_request_that_cannot_be_made_is_turned_down_before_anybody_is_asked() {
    let ask = KindAuthorizer::new([(Kind::Fetch, Permission::Ask)]);
    let executor = builder(open(), ToolContext::builder("t").build()).authorizer(ask).build();
    for (arguments, says) in [
        (json!({ "url": "ftp://a.example/" }), "the scheme `ftp` is not supported"),
        (json!({ "url": "/etc/passwd" }), "is not a URL"),
        (json!({ "url": "http://u:p@a.example/" }), "user name or password"),
        (json!({ "url": "http://a.example/", "headers": { "Host": "b" } }), "set by the client"),
        (json!({ "url": "http://a.example/", "headers": { "a": "b\r\nc: d" } }), "line break"),
        (json!({ "url": "http://a.example/", "headers": { "a": 1 } }), "`headers.a` has to be"),
        (json!({ "url": "http://a.example/", "method": "TRACE" }), "`TRACE` is not allowed"),
        (json!({ "url": "http://a.example/", "method": "A B" }), "is not an HTTP method"),
    ] {
        let mut with_method = json!({ "method": "GET" });
        let given = with_method.as_object_mut().unwrap();
        given.extend(arguments.as_object().unwrap().clone());
        let result = executor.execute(ToolCall::new("c", "http_request", with_method)).await;
        fails(&result, ErrorKind::Validation, says);
    }
}

#[test]
fn the_tools_say_what_they_are() {
    let tools = tools(HttpClient::new(HttpSettings::default()));
    let repeat = [Repeat::Idempotent, Repeat::Unsafe, Repeat::Unsafe];
    let parameters = [
        json!(["headers", "url"]),
        json!(["body", "headers", "url"]),
        json!(["body", "headers", "method", "url"]),
    ];
    for ((tool, repeat), parameters) in tools.iter().zip(repeat).zip(parameters) {
        let spec = tool.spec();
        assert_eq!((spec.category, spec.kind), (Category::Network, Kind::Fetch));
        assert_eq!(spec.repeat, repeat, "{}", spec.name);
        let properties = spec.parameters["properties"].as_object().unwrap();
        assert_eq!(json!(properties.keys().collect::<Vec<_>>()), parameters);
        assert_eq!(properties["headers"]["additionalProperties"], json!({ "type": "string" }));
        assert!(spec.parameters["required"].as_array().unwrap().contains(&json!("url")));
    }
}

#[tokio::test]
async fn a_call_says_beforehand_what_it_does_and_whom_it_reaches() {
    let arguments = json!({ "url": "http://EXA\tmple.org.:81/x" });
    let call = ToolCall::new("c", "http_get", arguments);
    let Decided::Ready(prepared) = executor(open()).prepare(call, CallOptions::default()).await
    else {
        panic!("not ready");
    };
    assert_eq!(prepared.description(), "GET http://example.org.:81/x");
    assert_eq!(prepared.effects().reads, [Resource::Host("example.org:81".into())]);
}

#[tokio::test]
async fn a_large_body_is_reported_on() {
    let server = Server::answering(answer(200, &[], vec![b'x'; 3 * 1024 * 1024])).await;
    let sink = Arc::new(MemorySink::default());
    let recorder = Recorder::new("run", sink.clone(), Arc::new(ManualClock::default()));
    let context = ToolContext::builder("task").build();
    let executor = builder(open(), context).recorder(recorder).build();
    let call = ToolCall::new("c", "http_get", json!({ "url": server.url("/") }));
    assert!(executor.execute(call).await.success());
    let events = sink.events();
    let updates: Vec<f64> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ToolCallProgress { update, .. } => update.fraction,
            _ => None,
        })
        .collect();
    assert!((2..=3).contains(&updates.len()), "{updates:?}");
    assert!(updates.is_sorted(), "{updates:?}");
}

#[tokio::test]
async fn stopping_the_run_stops_a_request_at_once() {
    let server = Server::start(|_| vec![Step::Hang]).await;
    let token = CancellationToken::new();
    let context = ToolContext::builder("task").cancellation(token.clone()).build();
    let executor = builder(open(), context).build();
    let call = ToolCall::new("c", "http_get", json!({ "url": server.url("/") }));
    let stop_when_asked = async {
        server.request_arrived().await;
        token.cancel();
        Instant::now()
    };
    let (result, stopped) = tokio::join!(executor.execute(call), stop_when_asked);
    fails(&result, ErrorKind::Cancelled, "the run was stopped");
    assert!(stopped.elapsed() < Duration::from_secs(1), "{:?}", stopped.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tools_conform() {
    let server = Server::answering(answer(200, &[], "hello")).await;
    for tool in tools(HttpClient::new(open())) {
        let mut example = json!({ "url": server.url("/") });
        if tool.spec().name == "http_request" {
            example["method"] = json!("GET");
        }
        let report = Conformance::new(tool).valid(example).run().await;
        assert!(report.passed(), "{report}");
    }
}
