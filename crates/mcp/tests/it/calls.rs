//! Calls: what comes back, what is told meanwhile, and what happens when nobody waits any more.

use std::time::Duration;

use convoke_core::{ErrorKind, EventBody, Kind, Part, Repeat, ToolCall};
use convoke_mcp::client::Trust;
use convoke_tool::testing::Conformance;
use convoke_tool::{Tool, ToolContext};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::scripted::{
    Scripted, call, call_tool, call_with, config, later, pipeline, the_tool, tool,
};

#[tokio::test]
async fn a_tool_is_listed_described_and_called() {
    let scripted = Scripted::with_tools(
        json!([{
            "name": "greet",
            "title": "Greets",
            "description": "Greets somebody.",
            "inputSchema": { "type": "object", "properties": { "name": { "type": "string" } },
                "required": ["name"] },
            "annotations": { "readOnlyHint": true },
        }]),
        |message, out| {
            let name = message["params"]["arguments"]["name"].as_str().unwrap();
            out.text(message, &format!("Hello, {name}!"));
        },
    );
    let servers = scripted.servers();
    let context = ToolContext::builder("task").build();
    let result = call_with(&servers, "greet", json!({ "name": "Ada" }), context.clone()).await;
    assert_eq!(result.text(), "Hello, Ada!");
    assert_eq!(result.value(), Some(&json!("Hello, Ada!")));

    let greet = the_tool(&servers, "greet");
    let spec = greet.spec();
    assert_eq!(spec.name, "mcp__s__greet");
    assert_eq!(spec.title(), "Greets");
    assert_eq!((spec.kind, spec.repeat), (Kind::Other, Repeat::Unsafe));
    assert_eq!(spec.parameters.get("required"), Some(&json!(["name"])));
    let prepared = greet.prepare(json!({ "name": "Ada" })).unwrap();
    assert_eq!(prepared.describe().as_deref(), Some("s: greet(name: \"Ada\")"));

    let wrong = call_with(&servers, "greet", json!({ "name": 7 }), context).await;
    assert_eq!(wrong.error().unwrap().kind, ErrorKind::Validation);
    assert_eq!(scripted.starts(), 1);
}

#[tokio::test]
async fn a_trusted_server_is_believed() {
    let tools = json!([{ "name": "look", "inputSchema": { "type": "object" },
        "annotations": { "readOnlyHint": true } }]);
    let scripted = Scripted::with_tools(tools, |message, out| out.text(message, "seen"));
    let servers = scripted.configured(config().trust(Trust::Annotations));
    call(&servers, "look").await;
    let spec = the_tool(&servers, "look").spec().clone();
    assert_eq!((spec.kind, spec.repeat), (Kind::Read, Repeat::Pure));
}

#[tokio::test]
async fn structured_content_is_checked_against_what_was_promised() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } },
        "required": ["n"] });
    let tools = json!([{ "name": "count", "inputSchema": { "type": "object" },
        "outputSchema": schema }, { "name": "lie", "inputSchema": { "type": "object" },
        "outputSchema": schema }]);
    let scripted = Scripted::with_tools(tools, |message, out| {
        let n = if message["params"]["name"] == "lie" { json!("many") } else { json!(7) };
        out.answer(message, &json!({ "content": [], "structuredContent": { "n": n } }));
    });
    let servers = scripted.servers();
    let right = call(&servers, "count").await;
    assert_eq!(right.value(), Some(&json!({ "n": 7 })));
    let lie = call(&servers, "lie").await;
    let error = lie.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Failed);
    assert!(error.message.contains("does not keep to the output schema"), "{error}");
    assert!(lie.text().contains("many"), "{}", lie.text());
}

#[tokio::test]
async fn errors_have_kinds_and_both_spellings_of_an_unknown_tool_are_one() {
    let tools = json!([tool("rpc"), tool("result"), tool("odd"), tool("fails")]);
    let scripted = Scripted::with_tools(tools, |message, out| {
        let error =
            |text: &str| json!({ "isError": true, "content": [{ "type": "text", "text": text }] });
        match message["params"]["name"].as_str().unwrap() {
            "rpc" => out.refuse(message, -32602, "Unknown tool: rpc"),
            "result" => out.answer(message, &error("Tool result not found")),
            "odd" => out.refuse(message, -32000, "the moon is full"),
            _ => out.answer(message, &error("no paper")),
        }
    });
    let servers = scripted.servers();
    for (name, kind, says) in [
        ("rpc", ErrorKind::NotFound, "Unknown tool"),
        ("result", ErrorKind::NotFound, "not found"),
        ("odd", ErrorKind::Failed, "(code -32000)"),
        ("fails", ErrorKind::Failed, "no paper"),
    ] {
        let result = call(&servers, name).await;
        let error = result.error().unwrap();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(says), "{error}");
    }
}

#[tokio::test]
async fn media_and_links_reach_the_model() {
    let scripted = Scripted::with_tools(json!([tool("show")]), |message, out| {
        out.answer(
            message,
            &json!({ "content": [
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "resource_link", "uri": "file:///a", "name": "a", "size": 3 },
            { "type": "from_the_future", "x": 1 },
        ] }),
        );
    });
    let result = call(&scripted.servers(), "show").await;
    let image = Part::Media { mime: "image/png".into(), data: "AAAA".into() };
    assert_eq!(result.llm_content[0], image);
    assert_eq!(result.llm_content[1], Part::text("[resource a](file:///a) 3 bytes"));
    assert!(result.llm_content[2].as_text().unwrap().contains("from_the_future"));
}

/// codex#21153: what a server says of its progress is told.
#[tokio::test(start_paused = true)]
async fn progress_is_shown_and_starts_the_time_anew() {
    let scripted = Scripted::with_tools(json!([tool("slow")]), |message, out| {
        let token = message["params"]["_meta"]["progressToken"].clone();
        for step in 1..=5_u64 {
            let (out, token) = (out.clone(), token.clone());
            later(Duration::from_secs(8 * step), move || {
                out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params":
                    { "progressToken": token, "progress": step, "total": 5, "message": "on it" } }));
            });
        }
        let (out, message) = (out.clone(), message.clone());
        later(Duration::from_secs(44), move || out.text(&message, "done"));
    });
    let servers = scripted.configured(config().timeout(Duration::from_secs(10)));
    servers.start("s").await.unwrap();
    let slow = the_tool(&servers, "slow");
    let (executor, events) = pipeline(&slow, ToolContext::builder("task").build());
    let result = executor.execute(ToolCall::new("c", slow.spec().name.clone(), json!({}))).await;
    assert_eq!(result.text(), "done");
    let progress = events
        .all()
        .iter()
        .filter(|event| {
            matches!(&event.body, EventBody::ToolCallProgress { update, .. }
            if update.fraction.is_some() && update.text.as_deref() == Some("on it\n"))
        })
        .count();
    assert_eq!(progress, 5);
}

/// goose#10463: a call that never ends is ended.
#[tokio::test(start_paused = true)]
async fn silence_ends_a_call_and_the_server_is_told() {
    let scripted = Scripted::with_tools(json!([tool("mute")]), |_, _| {});
    let servers = scripted.configured(config().timeout(Duration::from_secs(3)));
    let result = call(&servers, "mute").await;
    let error = result.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert!(error.message.contains("`s`") && error.message.contains("3000ms"), "{error}");
    let asked = scripted.seen.method("tools/call").await;
    let told = scripted.seen.method("notifications/cancelled").await;
    assert_eq!(told["params"]["requestId"], asked["id"]);
    // Nothing else is touched.
    assert_eq!(scripted.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_may_take_as_long_as_its_server_was_given() {
    let scripted = Scripted::with_tools(json!([tool("train")]), |message, out| {
        let token = message["params"]["_meta"]["progressToken"].clone();
        for step in 1..=15_u64 {
            let (out, token) = (out.clone(), token.clone());
            later(Duration::from_secs(55 * step), move || {
                out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params":
                    { "progressToken": token, "progress": step } }));
            });
        }
        let (out, message) = (out.clone(), message.clone());
        later(Duration::from_mins(14), move || out.text(&message, "trained"));
    });
    let patient = config().timeout(Duration::from_mins(1)).longest_call(Duration::from_mins(20));
    let result = call(&scripted.configured(patient), "train").await;
    assert_eq!(result.text(), "trained", "{:?}", result.error());
}

#[tokio::test(start_paused = true)]
async fn progress_without_end_ends_at_the_longest_time() {
    let scripted = Scripted::with_tools(json!([tool("busy")]), |message, out| {
        let token = message["params"]["_meta"]["progressToken"].clone();
        for step in 1..=200_u64 {
            let (out, token) = (out.clone(), token.clone());
            later(Duration::from_secs(step), move || {
                out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params":
                    { "progressToken": token, "progress": step } }));
            });
        }
    });
    let limits = config().timeout(Duration::from_secs(5)).longest_call(Duration::from_mins(1));
    let servers = scripted.configured(limits);
    let result = call(&servers, "busy").await;
    assert!(result.error().unwrap().message.contains("60000ms"), "{}", result.text());
}

#[tokio::test]
async fn a_call_that_is_cancelled_returns_at_once_and_the_server_is_told() {
    let scripted = Scripted::with_tools(json!([tool("mute"), tool("quick")]), |message, out| {
        if message["params"]["name"] == "quick" {
            out.text(message, "here");
        }
    });
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    let token = CancellationToken::new();
    let context = ToolContext::builder("task").cancellation(token.clone()).build();
    let mute = the_tool(&servers, "mute");
    let calling = call_tool(&mute, json!({}), context);
    let cancelling = async {
        let asked = scripted.seen.method("tools/call").await;
        token.cancel();
        asked
    };
    let (result, asked) = tokio::join!(calling, cancelling);
    assert_eq!(result.error().unwrap().kind, ErrorKind::Cancelled);
    let told = scripted.seen.method("notifications/cancelled").await;
    assert_eq!(told["params"]["requestId"], asked["id"]);
    assert_eq!(call(&servers, "quick").await.text(), "here");
}

#[tokio::test]
async fn unwanted_tools_are_left_out() {
    let tools = json!([tool("read_a"), tool("read_b"), tool("write_a")]);
    let scripted = Scripted::with_tools(tools, |message, out| out.text(message, ""));
    let servers = scripted.configured(config().include(["*_a"]).exclude(["write_*"]));
    servers.start("s").await.unwrap();
    let names: Vec<String> = servers.tools().iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, ["read_a"]);
}

#[tokio::test]
async fn a_tool_of_a_server_keeps_what_every_tool_promises() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer", "description": "How far." } },
        "required": ["n"], "additionalProperties": false });
    let tools = json!([{ "name": "count", "description": "Counts.", "inputSchema": schema }]);
    let scripted = Scripted::with_tools(tools, |message, out| out.text(message, "counted"));
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    let report = Conformance::new(the_tool(&servers, "count"))
        .valid(json!({ "n": 1 }))
        .in_context(ToolContext::builder("task").build())
        .run()
        .await;
    report.assert();
}

#[tokio::test]
async fn limits_without_end_are_limits_all_the_same() {
    let scripted = Scripted::with_tools(json!([tool("t")]), |message, out| out.text(message, "x"));
    let endless = config().timeout(Duration::MAX).longest_call(Duration::MAX);
    let servers = scripted.configured(endless.start_timeout(Duration::MAX));
    assert_eq!(call(&servers, "t").await.text(), "x");
}
