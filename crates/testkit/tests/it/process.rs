//! The server as a process of its own.
#![expect(clippy::disallowed_methods, reason = "the process is what is tested")]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

use convoke_testkit::Wire;
use serde_json::{Value, json};

use crate::client::Client;

/// A server that is killed if a test fails before it ends.
struct Server {
    process: Child,
    input: Option<ChildStdin>,
    url: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_model-server"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("listening on ").unwrap().to_owned();
        let input = process.stdin.take();
        Self { process, input, url }
    }

    fn port(&self) -> u16 {
        self.url.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    fn end(mut self) -> bool {
        drop(self.input.take());
        self.process.wait().unwrap().success()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has usually ended by now.
        drop(self.process.kill());
    }
}

/// Returns the messages of a conversation in which the model has spoken so often.
fn chat(turns: usize) -> Value {
    let mut messages = vec![json!({ "role": "user", "content": "Go." })];
    for _ in 0..turns {
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [] }));
        messages.push(json!({ "role": "tool", "tool_call_id": "x", "content": "done" }));
        messages.push(json!({ "role": "tool", "tool_call_id": "y", "content": "done" }));
    }
    json!({ "model": "m", "messages": messages, "stream": true })
}

#[tokio::test]
async fn a_process_plays_the_tool_loop_and_ends_with_its_input() {
    let directory = tempfile::tempdir().unwrap();
    let port_file = directory.path().join("port");
    let server = Server::start(&[
        "--port-file",
        port_file.to_str().unwrap(),
        "--latency-ms",
        "1",
        "--turns",
        "3",
        "--tool",
        "grep",
        "--arguments",
        r#"{"pattern":"{turn}-{call}"}"#,
        "--calls",
        "2",
    ]);
    assert_eq!(std::fs::read_to_string(&port_file).unwrap(), server.port().to_string());
    let mut client = Client::at(([127, 0, 0, 1], server.port()).into()).await;
    // No memory is needed, so the turns can come in any order.
    for (turns, calls) in [(2, 0), (0, 2), (1, 2), (5, 0)] {
        client.send(Wire::OpenAiChat, &chat(turns)).await;
        let answer = client.read_answer().await.unwrap();
        assert_eq!(answer.body.matches(r#""name":"grep""#).count(), calls);
        assert_eq!(answer.body.contains(r#""finish_reason":"stop""#), calls == 0);
        assert!(
            calls == 0 || answer.body.contains(&format!("call_{turns:04}_1")),
            "{}",
            answer.body
        );
        for call in 0..calls {
            assert!(answer.body.contains(&format!("{turns}-{call}")), "{}", answer.body);
        }
    }
    drop(client);
    assert!(server.end());
}

#[test]
fn a_wrong_flag_is_explained() {
    let output = Command::new(env!("CARGO_BIN_EXE_model-server"))
        .args(["--colour", "red"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("usage: model-server"));
}
