//! Lists, calls, progress: the same whichever way a client came in.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::event::Progress;
use convoke_core::{EventBody, Kind, ToolResult, ToolSpec};
use convoke_mcp::serve::{CallHandle, Offer, Service, serve_stdio};
use convoke_tool::KindAuthorizer;
use futures_util::future::join_all;
use rmcp::model::{
    CallToolRequest, ClientRequest, PaginatedRequestParams, ProtocolVersion, SubscriptionFilter,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{ServiceError, ServiceExt};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{Server, Way, call};

#[tokio::test]
async fn a_server_says_who_it_is() {
    for way in Way::ALL {
        let mut server = Server::new();
        let client = server.connect(way).await;
        let info = client.running.peer_info().unwrap();
        let info = serde_json::to_value(&*info).unwrap().to_string();
        assert!(info.contains("under test") && info.contains("1.2.3"), "{way:?}: {info}");
        assert!(info.contains("Add, greet, wait."), "{way:?}: {info}");
        assert!(info.contains("Under Test"), "{way:?}: {info}");
    }
}

#[tokio::test]
async fn tools_are_listed_with_schemas_and_hints_in_a_stable_order() {
    for way in Way::ALL {
        let mut server = Server::new();
        let client = server.connect(way).await;
        let tools = client.running.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(
            names,
            ["add", "delegate", "greet", "remove", "shout", "talk", "wait"],
            "{way:?}"
        );
        let tools = serde_json::to_value(&tools).unwrap();
        assert_eq!(tools[0]["title"], "Add numbers");
        assert_eq!(tools[0]["inputSchema"]["required"], json!(["left", "right"]));
        assert_eq!(tools[0]["outputSchema"]["properties"]["result"]["type"], "integer");
        assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
        assert_eq!(tools[2]["outputSchema"]["properties"]["greeting"]["type"], "string");
        assert_eq!(tools[3]["annotations"]["destructiveHint"], true);
    }
}

#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let mut server = Server::new();
    server.limits.page_size = 3;
    let client = server.connect(Way::OldStreams).await;
    let first = client.running.list_tools(None).await.unwrap();
    assert_eq!((first.tools.len(), first.next_cursor.as_deref()), (3, Some("greet")));
    let all = client.running.list_all_tools().await.unwrap();
    assert_eq!(all.len(), 7);
    let wrong = PaginatedRequestParams::default().with_cursor(Some(String::new()));
    let refused = client.running.list_tools(Some(wrong)).await;
    assert!(matches!(refused, Err(ServiceError::McpError(error)) if error.code.0 == -32602));
}

#[tokio::test]
async fn a_call_is_answered_with_text_and_value() {
    for way in Way::ALL {
        let mut server = Server::new();
        let client = server.connect(way).await;
        let sum =
            client.running.call_tool(call("add", json!({ "left": 2, "right": 3 }))).await.unwrap();
        assert_eq!(sum.structured_content, Some(json!({ "result": 5 })), "{way:?}");
        assert_eq!(sum.content[0].as_text().unwrap().text, "5");
        assert_eq!(sum.is_error, Some(false));
        let greeted =
            client.running.call_tool(call("greet", json!({ "name": "Ada" }))).await.unwrap();
        assert_eq!(greeted.structured_content, Some(json!({ "greeting": "Hello, Ada!" })));
        let events = server.events.events();
        let completed = |event: &convoke_core::Event| {
            matches!(&event.body, EventBody::ToolCallCompleted { .. })
        };
        let recorded = events.iter().filter(|event| completed(event)).count();
        assert_eq!(recorded, 2, "{way:?}: every call is recorded");
    }
}

#[tokio::test]
async fn a_wrong_call_is_answered_with_what_is_wrong() {
    for way in Way::ALL {
        let mut server = Server::new();
        let client = server.connect(way).await;
        let wrong = client.running.call_tool(call("add", json!({ "left": "two" }))).await.unwrap();
        assert_eq!(wrong.is_error, Some(true), "{way:?}");
        let text = &wrong.content[0].as_text().unwrap().text;
        assert!(text.starts_with("Error (validation):") && text.contains("right"), "{text}");
        let failed = json!({ "left": i64::MAX, "right": 1 });
        let failed = client.running.call_tool(call("add", failed)).await.unwrap();
        assert_eq!(failed.is_error, Some(true));
        assert_eq!(
            failed.content[0].as_text().unwrap().text,
            "Error (failed): the sum is too large"
        );
        let unknown = client.running.call_tool(call("ad", json!({}))).await;
        let Err(ServiceError::McpError(error)) = unknown else { panic!("{unknown:?}") };
        assert_eq!(error.code.0, -32602);
        assert!(error.message.contains("did you mean `add`"), "{}", error.message);
    }
}

#[tokio::test]
async fn a_call_that_nobody_allows_is_refused_with_a_reason() {
    let mut server = Server::allowing(KindAuthorizer::default());
    let client = server.connect(Way::NewStreams).await;
    let refused = client.running.call_tool(call("remove", json!({}))).await.unwrap();
    assert_eq!(refused.is_error, Some(true));
    let text = &refused.content[0].as_text().unwrap().text;
    assert!(text.starts_with("Error (permission): Permission denied:"), "{text}");
    assert!(text.contains("nobody can be asked"), "{text}");
    let looked = client.running.call_tool(call("talk", json!({}))).await.unwrap();
    assert_eq!(looked.is_error, Some(false), "what only looks may run");
}

#[tokio::test]
async fn a_long_answer_is_cut_and_says_so() {
    let mut server = Server::new();
    let client = server.connect(Way::NewHttp).await;
    let shouted = client.running.call_tool(call("shout", json!({}))).await.unwrap();
    let text = &shouted.content[0].as_text().unwrap().text;
    assert!(text.len() < 70_000 && text.contains("bytes are not shown"), "{}", text.len());
}

/// codex#6127, #11015, #4993: a client hears of a long call while it works.
#[tokio::test]
async fn words_of_a_call_reach_its_client_before_its_answer() {
    for way in Way::ALL {
        let mut server = Server::new();
        let mut client = server.connect(way).await;
        // The library gives every request a token.
        client.running.call_tool(call("talk", json!({}))).await.unwrap();
        let mut messages = String::new();
        let mut last = 0.0;
        while let Some(told) = client.heard.recv().await {
            assert!(told.progress > last, "{way:?}: numbers grow");
            last = told.progress;
            messages.push_str(&told.message.unwrap_or_default());
            if messages.contains("three") {
                break;
            }
        }
        assert_eq!(messages.replace('\n', ""), "onetwothree", "{way:?}");
    }
}

#[tokio::test]
async fn a_hundred_calls_at_once_get_their_own_answers() {
    for way in Way::ALL {
        let mut server = Server::new();
        let client = server.connect(way).await;
        let calls = (0..100).map(|number| {
            let arguments = json!({ "left": number, "right": 1000 });
            client.running.call_tool(call("add", arguments))
        });
        for (number, answer) in join_all(calls).await.into_iter().enumerate() {
            let sum = answer.unwrap().structured_content;
            assert_eq!(sum, Some(json!({ "result": number + 1000 })), "{way:?}");
        }
    }
}

#[tokio::test]
async fn more_calls_than_there_is_room_for_are_refused() {
    let mut server = Server::new();
    server.limits.max_calls = 1;
    let client = server.connect(Way::OldStreams).await;
    let request = CallToolRequest::new(call("wait", json!({})));
    let waiting = client
        .running
        .send_cancellable_request(
            ClientRequest::CallToolRequest(request),
            PeerRequestOptions::no_options(),
        )
        .await
        .unwrap();
    server.stage.has_started().await;
    let refused =
        client.running.call_tool(call("add", json!({ "left": 1, "right": 1 }))).await.unwrap();
    assert_eq!(refused.is_error, Some(true));
    let text = &refused.content[0].as_text().unwrap().text;
    assert!(text.contains("1 calls under way"), "{text}");
    server.stage.go.add_permits(1);
    waiting.await_response().await.unwrap();
    let sum =
        client.running.call_tool(call("add", json!({ "left": 1, "right": 1 }))).await.unwrap();
    assert_eq!(sum.is_error, Some(false), "there is room again");
}

#[tokio::test]
async fn clients_hear_that_the_tools_have_changed() {
    for way in [Way::OldStreams, Way::OldHttp] {
        let mut server = Server::new();
        let mut client = server.connect(way).await;
        server.registry.remove("shout").unwrap();
        client.changed.recv().await.unwrap();
        let tools = client.running.list_all_tools().await.unwrap();
        assert!(tools.iter().all(|tool| tool.name != "shout"), "{way:?}");
    }
}

#[tokio::test]
async fn clients_without_a_session_listen_for_changes() {
    for way in [Way::NewStreams, Way::NewHttp] {
        let mut server = Server::new();
        let client = server.connect(way).await;
        let wanted = SubscriptionFilter::builder().tools_list_changed().build();
        let mut subscription = client.running.peer().listen(wanted).await.unwrap();
        server.registry.remove("shout").unwrap();
        let heard = subscription.next().await.unwrap();
        let heard = serde_json::to_value(&heard).unwrap().to_string();
        assert!(heard.contains("tools/list_changed"), "{way:?}: {heard}");
    }
}

#[tokio::test]
async fn every_revision_with_a_handshake_is_spoken() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut server = Server::new();
        let answer = crate::lines::talk(
            &mut server,
            &format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
            ),
            1,
        )
        .await;
        assert_eq!(answer[0]["result"]["protocolVersion"], version);
        assert_eq!(answer[0]["result"]["serverInfo"]["name"], "under test");
    }
    assert_eq!(ProtocolVersion::KNOWN_VERSIONS.len(), 5, "a new revision wants a test");
}

/// An offer of one tool that breaks down, without a pipeline that would catch it.
struct Fragile(watch::Sender<u64>);

#[async_trait]
impl Offer for Fragile {
    fn tools(&self) -> Vec<ToolSpec> {
        vec![ToolSpec::new("break", "Breaks.", Kind::Read)]
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }

    async fn call(&self, name: &str, _: Value, _: CallHandle) -> ToolResult {
        panic!("{name}")
    }
}

#[tokio::test]
async fn a_call_is_answered_although_the_offer_breaks_down() {
    let offer = Arc::new(Fragile(watch::Sender::new(0)));
    let (theirs, ours) = tokio::io::duplex(1024);
    let (reader, writer) = tokio::io::split(ours);
    let mut served = JoinSet::new();
    let service = Service::new("fragile", "1", offer);
    served.spawn(serve_stdio(service, reader, writer, CancellationToken::new()));
    let client = ().serve(tokio::io::split(theirs)).await.unwrap();
    for _ in 0..2 {
        let broken = client.call_tool(call("break", json!({}))).await.unwrap();
        assert_eq!(broken.is_error, Some(true));
        let text = &broken.content[0].as_text().unwrap().text;
        assert_eq!(text, "Error (failed): `break` broke down; this is a defect in it");
    }
}

/// An offer of one tool that says something and then works on by itself.
struct Talker {
    changes: watch::Sender<u64>,
    worked: mpsc::UnboundedSender<Duration>,
}

#[async_trait]
impl Offer for Talker {
    fn tools(&self) -> Vec<ToolSpec> {
        vec![ToolSpec::new("talk", "Talks.", Kind::Read)]
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn call(&self, _: &str, _: Value, handle: CallHandle) -> ToolResult {
        let begun = Instant::now();
        handle.progress.send(Progress { text: Some("word ".repeat(100)), fraction: None });
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.worked.send(begun.elapsed()).unwrap();
        std::future::pending().await
    }
}

/// Regression: while a client took its time to hear a word, the call stood still.
#[tokio::test(start_paused = true)]
async fn a_call_does_not_wait_for_a_client_that_does_not_read() {
    let (worked, mut works) = mpsc::unbounded_channel();
    let offer = Arc::new(Talker { changes: watch::Sender::new(0), worked });
    let (mut theirs, ours) = tokio::io::duplex(64);
    let (reader, writer) = tokio::io::split(ours);
    let mut served = JoinSet::new();
    let service = Service::new("talker", "1", offer);
    served.spawn(serve_stdio(service, reader, writer, CancellationToken::new()));
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "talk", "_meta": {
            "progressToken": 1,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        } },
    });
    theirs.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    let took = works.recv().await.unwrap();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// A change that changes nothing is nobody's business.
#[tokio::test]
async fn clients_hear_only_of_tools_that_are_served() {
    let mut server = Server::new();
    let mut client = server.connect(Way::OldStreams).await;
    server.registry.remove("shout").unwrap();
    client.changed.recv().await.unwrap();
    // Somebody who brings nothing.
    server.registry.set_group("late_", Vec::new());
    client.running.list_all_tools().await.unwrap();
    server.registry.remove("talk").unwrap();
    client.changed.recv().await.unwrap();
    client.running.list_all_tools().await.unwrap();
    assert!(client.changed.try_recv().is_err());
}
