//! Calls: what comes back, what is told meanwhile, and what happens when nobody waits any more.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke_core::{ErrorKind, EventBody, Kind, Part, Repeat, ToolCall};
use convoke_mcp::client::Trust;
use convoke_tool::testing::Conformance;
use convoke_tool::{Tool, ToolContext};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::scripted::{
    Out, Scripted, basics, call, call_tool, call_with, config, later, pipeline, the_tool, tool,
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

/// A server whose tool `dig` is called as a task, as revision 2025-11-25 has them, and which says how the task stands
/// as `follow` does.
fn diggers(poll_interval: u64, follow: impl Fn(&Value, &Out) + Send + Sync + 'static) -> Scripted {
    Scripted::new(move |message, out| match message["method"].as_str() {
        Some("tools/list") => {
            let mut dig = tool("dig");
            dig["execution"] = json!({ "taskSupport": "required" });
            out.answer(message, &json!({ "tools": [dig] }));
        }
        Some("tools/call") if message["params"]["task"].is_object() => {
            let mut task = state("working", "");
            task["pollInterval"] = json!(poll_interval);
            out.answer(message, &json!({ "task": task, "_meta": { "x": 1 } }));
            follow(message, out);
        }
        Some("tools/call") => out.refuse(message, -32601, "it requires task augmentation"),
        Some(method) if method.starts_with("tasks/") => follow(message, out),
        _ => basics(message, out),
    })
}

fn state(status: &str, note: &str) -> Value {
    json!({ "taskId": "t-1", "status": status, "statusMessage": note, "ttl": 60_000,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "pollInterval": 20 })
}

/// Such a server, which is asked after `polls` times.
fn digging(polls: usize) -> Scripted {
    let asked = AtomicUsize::new(0);
    diggers(20, move |message, out| match message["method"].as_str() {
        Some("tasks/get") if asked.fetch_add(1, Ordering::Relaxed) < polls => {
            out.answer(message, &state("working", "half way down"));
        }
        Some("tasks/get") => out.answer(message, &state("completed", "")),
        Some("tasks/result") => out.text(message, "a bone"),
        Some("tasks/cancel") => out.answer(message, &state("cancelled", "")),
        _ => {}
    })
}

/// Regression: such a tool was offered, and each call of it was refused.
#[tokio::test(start_paused = true)]
async fn a_tool_that_is_called_as_a_task_only_is_called_so() {
    let scripted = digging(2);
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    let dig = the_tool(&servers, "dig");
    let (executor, events) = pipeline(&dig, ToolContext::builder("task").build());
    let result = executor.execute(ToolCall::new("c", dig.spec().name.clone(), json!({}))).await;
    assert_eq!(result.text(), "a bone");
    let methods = scripted.seen.methods();
    let tasks: Vec<&str> =
        methods.iter().map(String::as_str).filter(|method| method.starts_with("tasks/")).collect();
    assert_eq!(tasks, ["tasks/get", "tasks/get", "tasks/get", "tasks/result"]);
    let told = events.all().iter().any(|event| {
        matches!(&event.body, EventBody::ToolCallProgress { update, .. }
            if update.text.as_deref().is_some_and(|text| text.contains("half way down")))
    });
    assert!(told, "what it says of the task is progress");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_nobody_waits_for_is_taken_back() {
    let scripted = digging(usize::MAX);
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    let token = CancellationToken::new();
    let context = ToolContext::builder("task").cancellation(token.clone()).build();
    let dig = the_tool(&servers, "dig");
    let cancelling = async {
        scripted.seen.method("tasks/get").await;
        token.cancel();
    };
    let (result, ()) = tokio::join!(call_tool(&dig, json!({}), context), cancelling);
    assert_eq!(result.error().unwrap().kind, ErrorKind::Cancelled);
    let told = scripted.seen.method("tasks/cancel").await;
    assert_eq!(told["params"]["taskId"], "t-1");
    let limits = config().timeout(Duration::from_secs(5)).longest_call(Duration::from_secs(30));
    let result = call(&digging(usize::MAX).configured(limits), "dig").await;
    assert!(result.error().unwrap().message.contains("30000ms"), "{}", result.text());
}

/// Regression: it read as if the call had been refused, and so as if it could be made again.
#[tokio::test(start_paused = true)]
async fn a_task_that_the_server_forgets_may_have_had_an_effect() {
    for (forgotten, status) in [("tasks/get", "working"), ("tasks/result", "completed")] {
        let scripted = diggers(20, move |message, out| match message["method"].as_str() {
            Some(method) if method == forgotten => {
                out.refuse(message, -32602, "Failed to retrieve task");
            }
            Some("tasks/get") => out.answer(message, &state(status, "")),
            _ => {}
        });
        let result = call(&scripted.servers(), "dig").await;
        let error = result.error().unwrap();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        for part in ["Failed to retrieve task", "had begun", "had an effect is not known"] {
            assert!(error.message.contains(part), "{part} in {error}");
        }
    }
    let refuses = diggers(20, |message, out| match message["method"].as_str() {
        Some("tasks/get") => out.answer(message, &state("failed", "")),
        Some("tasks/result") => out.refuse(message, -32000, "there is a rock"),
        _ => {}
    });
    let refused = call(&refuses.servers(), "dig").await;
    let error = refused.error().unwrap();
    assert!(error.message.contains("refused: there is a rock"), "the call itself was: {error}");
}

/// Regression: a task that waited for something, and whose result could not be had, waited on.
#[tokio::test(start_paused = true)]
async fn a_task_whose_result_is_lost_is_taken_back_unless_it_is_over() {
    for (status, is_taken_back) in [("input_required", true), ("completed", false)] {
        let scripted = diggers(20, move |message, out| match message["method"].as_str() {
            Some("tasks/get") => out.answer(message, &state(status, "")),
            Some("tasks/result") => out.refuse(message, -32603, "try again"),
            _ => {}
        });
        let servers = scripted.servers();
        assert!(!call(&servers, "dig").await.success());
        if is_taken_back {
            scripted.seen.method("tasks/cancel").await;
        }
        servers.stop().await;
        let told = scripted.seen.methods().iter().any(|method| method == "tasks/cancel");
        assert_eq!(told, is_taken_back, "{status}");
    }
}

/// Regression: what a server reported under the name that the call began with was nobody's while its result was waited
/// for.
#[tokio::test(start_paused = true)]
async fn progress_of_a_task_is_that_of_the_call_that_began_it() {
    let token = Mutex::new(Value::Null);
    let scripted = diggers(20, move |message, out| match message["method"].as_str() {
        Some("tools/call") => {
            *token.lock().unwrap() = message["params"]["_meta"]["progressToken"].clone();
        }
        Some("tasks/get") => out.answer(message, &state("input_required", "")),
        Some("tasks/result") => {
            out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                "params": { "progressToken": *token.lock().unwrap(), "progress": 1, "message": "deep" } }));
            out.text(message, "a bone");
        }
        _ => {}
    });
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    let dig = the_tool(&servers, "dig");
    let (executor, events) = pipeline(&dig, ToolContext::builder("task").build());
    let result = executor.execute(ToolCall::new("c", dig.spec().name.clone(), json!({}))).await;
    assert_eq!(result.text(), "a bone");
    let told = events.all().iter().any(|event| {
        matches!(&event.body, EventBody::ToolCallProgress { update, .. }
            if update.text.as_deref() == Some("deep\n"))
    });
    assert!(told, "{:?}", events.all());
}

/// A server that does not say that it takes tasks must not be given any.
#[tokio::test]
async fn a_server_that_takes_no_tasks_is_called_plainly() {
    let mut dig = tool("dig");
    dig["execution"] = json!({ "taskSupport": "required" });
    let scripted = Scripted::new(move |message, out| match message["method"].as_str() {
        Some("initialize") => out.answer(
            message,
            &json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {},
                "tasks": { "list": {} } }, "serverInfo": { "name": "plain", "version": "1" } }),
        ),
        Some("tools/list") => out.answer(message, &json!({ "tools": [dig] })),
        Some("tools/call") => out.text(message, &message["params"]["task"].to_string()),
        _ => basics(message, out),
    });
    assert_eq!(call(&scripted.servers(), "dig").await.text(), "null");
}

/// Regression: a task was asked after when its time had come, whatever the server had said of it since.
#[tokio::test(start_paused = true)]
async fn a_task_that_the_server_says_to_be_done_is_asked_after_at_once() {
    let scripted = diggers(100_000_000, |message, out| match message["method"].as_str() {
        Some("tools/call") => {
            let out = out.clone();
            later(Duration::from_millis(500), move || {
                out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status",
                    "params": state("completed", "") }));
            });
        }
        Some("tasks/get") => out.answer(message, &state("completed", "")),
        Some("tasks/result") => out.text(message, "a bone"),
        _ => {}
    });
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    let begun = Instant::now();
    assert_eq!(call(&servers, "dig").await.text(), "a bone");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
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
