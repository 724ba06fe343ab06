//! How calls end before their time: taken back, abandoned, too long, or because the server stops.

use std::time::Duration;

use convoke_mcp::serve::serve_stdio;
use rmcp::model::{CallToolRequest, ClientRequest};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::{Client, Server, Way, call};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const WAIT: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

async fn start_waiting(client: &Client) -> RequestHandle<RoleClient> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(call("wait", json!({}))));
    client
        .running
        .send_cancellable_request(request, PeerRequestOptions::no_options())
        .await
        .unwrap()
}

/// Whoever comes next is served: what ended was the call alone.
async fn serves_the_next(server: &mut Server) {
    let next = server.connect(Way::NewStreams).await;
    let sum = next.running.call_tool(call("add", json!({ "left": 1, "right": 1 }))).await.unwrap();
    assert_eq!(sum.is_error, Some(false), "the server goes on");
}

#[tokio::test]
async fn a_call_that_is_taken_back_stops() {
    for way in [Way::OldStreams, Way::NewStreams, Way::OldHttp] {
        let mut server = Server::new();
        let client = server.connect(way).await;
        let waiting = start_waiting(&client).await;
        server.stage.has_started().await;
        waiting.cancel(Some("never mind".into())).await.unwrap();
        server.stage.has_stopped().await;
        let sum =
            client.running.call_tool(call("add", json!({ "left": 1, "right": 1 }))).await.unwrap();
        assert_eq!(sum.is_error, Some(false), "{way:?}: the connection goes on");
    }
}

#[tokio::test]
async fn a_call_that_is_taken_back_is_not_answered() {
    let mut server = Server::new();
    let (reader, mut writer) = tokio::io::split(server.streams());
    let mut heard = BufReader::new(reader).lines();
    let wait = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{},"_meta":{"progressToken":"t"}}}"#;
    writer.write_all(format!("{HELLO}\n{wait}\n").as_bytes()).await.unwrap();
    server.stage.has_started().await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    writer.write_all(format!("{cancel}\n").as_bytes()).await.unwrap();
    server.stage.has_stopped().await;
    writer.write_all(format!("{PING}\n").as_bytes()).await.unwrap();
    writer.shutdown().await.unwrap();
    let mut ids = Vec::new();
    while let Some(line) = heard.next_line().await.unwrap() {
        let message: serde_json::Value = serde_json::from_str(&line).unwrap();
        if message.get("id").is_some() {
            ids.push(message["id"].clone());
        }
    }
    assert_eq!(ids, [json!(0), json!(2)], "hello and ping are answered, the call is not");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_client_hung_up_stops() {
    for way in [Way::OldStreams, Way::NewStreams] {
        let mut server = Server::new();
        let client = server.connect(way).await;
        let _waiting = start_waiting(&client).await;
        server.stage.has_started().await;
        client.running.cancel().await.unwrap();
        server.stage.has_stopped().await;
        let served = server.served.join_next().await.unwrap().unwrap();
        assert!(served.is_ok(), "{way:?}: {served:?}");
    }
}

/// Regression: it took five seconds until the call was told. A client that only closed its side hears how it ended.
#[tokio::test(start_paused = true)]
async fn a_call_ends_soon_when_nothing_more_comes() {
    let mut server = Server::new();
    let (reader, mut writer) = tokio::io::split(server.streams());
    writer.write_all(format!("{HELLO}\n{WAIT}\n").as_bytes()).await.unwrap();
    server.stage.has_started().await;
    let hung_up = tokio::time::Instant::now();
    writer.write_all(format!("{PING}\n").as_bytes()).await.unwrap();
    writer.shutdown().await.unwrap();
    assert!(server.served.join_next().await.unwrap().unwrap().is_ok());
    assert!(hung_up.elapsed() < Duration::from_secs(2), "{:?}", hung_up.elapsed());
    server.stage.has_stopped().await;
    let mut heard = BufReader::new(reader).lines();
    let mut answers = Vec::new();
    while let Some(line) = heard.next_line().await.unwrap() {
        answers.push(serde_json::from_str::<serde_json::Value>(&line).unwrap());
    }
    let answer = |id: i64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert!(answer(2)["result"].is_object(), "what was asked for last is answered: {answers:?}");
    assert_eq!(answer(1)["result"]["isError"], true, "{answers:?}");
}

/// Nobody can get the answer, though more may still come.
#[tokio::test(start_paused = true)]
async fn a_call_ends_at_once_when_nobody_reads_its_answer() {
    let mut server = Server::new();
    let (mut asking, reader) = tokio::io::duplex(1024);
    let (writer, answers) = tokio::io::duplex(1024);
    server.served.spawn(serve_stdio(server.service(), reader, writer, server.stop.clone()));
    asking.write_all(format!("{HELLO}\n{WAIT}\n").as_bytes()).await.unwrap();
    let mut answers = BufReader::new(answers).lines();
    assert!(answers.next_line().await.unwrap().unwrap().contains("protocolVersion"));
    server.stage.has_started().await;
    drop(answers);
    let hung_up = tokio::time::Instant::now();
    asking.write_all(format!("{PING}\n").as_bytes()).await.unwrap();
    server.stage.has_stopped().await;
    assert!(server.served.join_next().await.unwrap().unwrap().is_ok());
    assert!(hung_up.elapsed() < Duration::from_secs(1), "{:?}", hung_up.elapsed());
}

/// Regression: the error named a type of ours.
#[tokio::test]
async fn a_client_that_goes_before_it_is_answered_did_nothing_wrong() {
    let mut server = Server::new();
    let (mut asking, reader) = tokio::io::duplex(1024);
    let (writer, answers) = tokio::io::duplex(1024);
    drop(answers);
    server.served.spawn(serve_stdio(server.service(), reader, writer, server.stop.clone()));
    asking.write_all(format!("{HELLO}\n").as_bytes()).await.unwrap();
    let served = server.served.join_next().await.unwrap().unwrap();
    assert!(served.is_ok(), "{served:?}");
}

/// Whoever listens for changes and hangs up has nothing to wait for, and may soon end the server by force.
#[tokio::test(start_paused = true)]
async fn a_client_that_only_listens_and_hangs_up_is_not_waited_for() {
    let mut server = Server::new();
    let (reader, mut writer) = tokio::io::split(server.streams());
    let listen = json!({
        "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
        "params": {
            "notifications": { "toolsListChanged": true },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    writer.write_all(format!("{listen}\n").as_bytes()).await.unwrap();
    let told = BufReader::new(reader).lines().next_line().await.unwrap().unwrap();
    assert!(told.contains("acknowledged"), "{told}");
    let hung_up = tokio::time::Instant::now();
    writer.shutdown().await.unwrap();
    assert!(server.served.join_next().await.unwrap().unwrap().is_ok());
    assert!(hung_up.elapsed() < Duration::from_secs(1), "{:?}", hung_up.elapsed());
}

#[tokio::test]
async fn a_call_whose_connection_is_gone_stops() {
    let mut server = Server::new();
    let client = server.connect(Way::NewHttp).await;
    let waiting = start_waiting(&client).await;
    server.stage.has_started().await;
    // The client is dropped with everything it holds, as when its process dies.
    drop(waiting);
    client.running.cancel().await.unwrap();
    server.stage.has_stopped().await;
    serves_the_next(&mut server).await;
}

#[tokio::test]
async fn a_session_that_is_ended_takes_its_calls_along() {
    let mut server = Server::new();
    let client = server.connect(Way::OldHttp).await;
    let _waiting = start_waiting(&client).await;
    server.stage.has_started().await;
    client.running.cancel().await.unwrap();
    server.stage.has_stopped().await;
    serves_the_next(&mut server).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_stopped_and_says_so() {
    let mut server = Server::new();
    server.limits.longest_call = Duration::from_secs(7);
    let client = server.connect(Way::OldStreams).await;
    let late = client.running.call_tool(call("delegate", json!({}))).await.unwrap();
    assert_eq!(late.is_error, Some(true));
    let text = &late.content[0].as_text().unwrap().text;
    assert_eq!(text, "Error (timeout): Tool execution timed out after 7000ms");
    server.stage.has_stopped().await;
}

#[tokio::test]
async fn a_server_that_stops_ends_its_calls_first() {
    for way in Way::ALL {
        let mut server = Server::new();
        let client = server.connect(way).await;
        let waiting = start_waiting(&client).await;
        server.stage.has_started().await;
        server.stop.cancel();
        let served = server.served.join_next().await.unwrap().unwrap();
        assert!(served.is_ok(), "{way:?}: {served:?}");
        assert_eq!(server.stage.stopped.available_permits(), 1, "{way:?}: it stopped before");
        if matches!(way, Way::OldStreams | Way::NewStreams) {
            let answer = serde_json::to_value(waiting.await_response().await.unwrap()).unwrap();
            assert_eq!(answer["isError"], true, "{way:?}");
            let text = answer["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("the server is shutting down"), "{way:?}: {text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_stops_although_its_client_does_not_read() {
    let mut server = Server::new();
    let (theirs, ours) = tokio::io::duplex(1024);
    let (reader, writer) = tokio::io::split(ours);
    server.served.spawn(serve_stdio(server.service(), reader, writer, server.stop.clone()));
    let (reader, mut writer) = tokio::io::split(theirs);
    writer.write_all(format!("{HELLO}\n").as_bytes()).await.unwrap();
    let hello = BufReader::new(reader).lines().next_line().await.unwrap().unwrap();
    assert!(hello.contains("protocolVersion"), "{hello}");
    for id in 0..100 {
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        writer.write_all(format!("{ping}\n").as_bytes()).await.unwrap();
    }
    server.stop.cancel();
    assert!(server.served.join_next().await.unwrap().unwrap().is_ok());
}
