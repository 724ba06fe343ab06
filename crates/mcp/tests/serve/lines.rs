//! Raw lines: what a client could send that no library would.

use convoke_mcp::serve::serve_stdio;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::Server;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Sends lines and returns so many answers.
pub(crate) async fn talk(server: &mut Server, lines: &str, answers: usize) -> Vec<Value> {
    let (reader, mut writer) = tokio::io::split(server.streams());
    writer.write_all(format!("{lines}\n").as_bytes()).await.unwrap();
    let mut heard = BufReader::new(reader).lines();
    let mut answered = Vec::new();
    while answered.len() < answers {
        let line = heard.next_line().await.unwrap().unwrap();
        answered.push(serde_json::from_str(&line).unwrap());
    }
    answered
}

async fn after_hello(lines: &str, answers: usize) -> Vec<Value> {
    let mut server = Server::new();
    let mut answered = talk(&mut server, &format!("{HELLO}\n{lines}"), answers + 1).await;
    assert_eq!(answered[0]["id"], "hello");
    answered.remove(0);
    answered
}

fn codes(answers: &[Value]) -> Vec<i64> {
    answers.iter().map(|answer| answer["error"]["code"].as_i64().unwrap_or(0)).collect()
}

const PING: &str = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;

#[tokio::test]
async fn garbage_is_answered_and_the_connection_goes_on() {
    let answers = after_hello(&format!("this is not JSON\n{PING}"), 2).await;
    assert_eq!(codes(&answers), [-32700, 0]);
    assert_eq!(answers[0]["id"], Value::Null);
    assert_eq!(answers[1], json!({ "jsonrpc": "2.0", "id": 9, "result": {} }));
}

#[tokio::test]
async fn a_batch_is_refused_as_a_whole() {
    let answers = after_hello(&format!("[{PING},{PING}]\n{PING}"), 2).await;
    assert_eq!(codes(&answers), [-32600, 0]);
}

#[tokio::test]
async fn a_request_without_a_usable_id_is_refused() {
    let null = r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#;
    let object = r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#;
    let answers = after_hello(&format!("{null}\n{object}\n{PING}"), 3).await;
    assert_eq!(codes(&answers), [-32600, -32600, 0]);
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused() {
    let wait = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"wait"}}"#;
    let answers = after_hello(&format!("{wait}\n{PING}"), 1).await;
    assert_eq!((codes(&answers), &answers[0]["id"]), (vec![-32600], &Value::Null));
}

#[tokio::test]
async fn an_unknown_method_and_wrong_parameters_are_told_apart() {
    let unknown = r#"{"jsonrpc":"2.0","id":1,"method":"tools/dance"}"#;
    let prompts = r#"{"jsonrpc":"2.0","id":2,"method":"prompts/list"}"#;
    let nameless = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"nom":"add"}}"#;
    let list =
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"add","arguments":[1]}}"#;
    for (line, code) in [(unknown, -32601), (prompts, -32601), (nameless, -32602), (list, -32602)] {
        let answers = after_hello(line, 1).await;
        assert_eq!(codes(&answers), [code], "{line}: {answers:?}");
    }
}

#[tokio::test]
async fn arguments_may_be_left_out() {
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk"}}"#;
    let answers = after_hello(line, 1).await;
    assert_eq!(answers[0]["result"]["content"][0]["text"], "talked");
    assert_eq!(answers[0]["result"].get("resultType"), None, "older clients do not know it");
}

#[tokio::test]
async fn a_huge_line_is_refused_and_the_next_one_is_read() {
    let mut server = Server::new();
    server.limits.max_message_bytes = 1000;
    let huge = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(100_000));
    let answers = talk(&mut server, &format!("{HELLO}\n{huge}\n{PING}"), 3).await;
    assert_eq!(codes(&answers), [0, -32600, 0]);
}

#[tokio::test]
async fn a_call_before_anything_else_is_refused_and_the_handshake_still_works() {
    let early = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk"}}"#;
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    let mut server = Server::new();
    let answers = talk(&mut server, &format!("{cancelled}\n{early}\n{HELLO}\n{PING}"), 3).await;
    assert_eq!(codes(&answers), [-32602, 0, 0]);
}

#[tokio::test]
async fn requests_without_a_handshake_bring_their_own_words() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "greet", "arguments": { "name": "Ada" }, "_meta": meta },
    });
    let mut server = Server::new();
    let answers = talk(&mut server, &request.to_string(), 1).await;
    assert_eq!(answers[0]["result"]["structuredContent"]["greeting"], "Hello, Ada!");
    assert_eq!(answers[0]["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_not_listened_to_until_it_does() {
    const PINGS: usize = 10_000;
    let mut server = Server::new();
    let (reader, mut writer) = tokio::io::split(server.streams());
    let ping = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#) + "\n";
    let lines = format!("{HELLO}\n{}", (0..PINGS).map(ping).collect::<String>());
    let mut writing = std::pin::pin!(writer.write_all(lines.as_bytes()));
    let soon = std::time::Duration::from_mins(1);
    assert!(tokio::time::timeout(soon, &mut writing).await.is_err(), "the server keeps no more");
    let mut heard = BufReader::new(reader).lines();
    let reading = async {
        for _ in 0..=PINGS {
            heard.next_line().await.unwrap().unwrap();
        }
    };
    let (written, ()) = tokio::join!(writing, reading);
    written.unwrap();
}

/// Regression: a refusal was written while the next message was waited for, and lost when something else came first.
#[tokio::test]
async fn every_refusal_arrives_whole_while_others_write() {
    const BAD: usize = 200;
    let mut server = Server::new();
    let (ours, theirs) = tokio::io::duplex(64);
    let (reader, writer) = tokio::io::split(ours);
    server.served.spawn(serve_stdio(server.service(), reader, writer, server.stop.clone()));
    let (reader, mut writer) = tokio::io::split(theirs);
    let talk = |id| {
        json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "talk", "_meta": { "progressToken": id } },
        })
    };
    let bad = (0..BAD).map(|id| format!("{}\ngarbage {id}\n", talk(id)));
    let lines = format!("{HELLO}\n{}", bad.collect::<String>());
    let mut heard = BufReader::new(reader).lines();
    let reading = async {
        let (mut refused, mut answered) = (0, 0);
        while refused < BAD || answered < BAD {
            let line = heard.next_line().await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            refused += usize::from(message["error"]["code"] == -32700);
            answered += usize::from(message["id"].is_number());
        }
        (refused, answered)
    };
    let (written, heard) = tokio::join!(writer.write_all(lines.as_bytes()), reading);
    written.unwrap();
    assert_eq!(heard, (BAD, BAD), "each is refused or answered once");
}

#[tokio::test]
async fn subscriptions_are_counted_and_do_not_stop_the_reading() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = |id: usize, method: &str, params: Value| {
        let mut params = params;
        params["_meta"] = meta.clone();
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let wanted = || json!({ "notifications": { "toolsListChanged": true } });
    let listening = (0..600).map(|id| request(id, "subscriptions/listen", wanted()));
    let list = request(1000, "tools/list", json!({}));
    let lines: Vec<String> = listening.chain([list]).collect();
    let mut server = Server::new();
    let (reader, mut writer) = tokio::io::split(server.streams());
    writer.write_all((lines.join("\n") + "\n").as_bytes()).await.unwrap();
    let mut heard = BufReader::new(reader).lines();
    let (mut refused, mut listed) = (0, false);
    while refused < 600 - 16 || !listed {
        let line = heard.next_line().await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        refused += usize::from(message["error"]["code"] == -32600);
        listed |= message["id"] == 1000;
    }
    assert_eq!(refused, 600 - 16, "sixteen listen");
}
