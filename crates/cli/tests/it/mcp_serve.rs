//! `convoke mcp serve`: what others get of it, and what they do not.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, Stdio};

use convoke_testkit::{Reaction, Reply};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::run::World;
use crate::support::{Scene, skip};

const CONVOKE: &str = env!("CARGO_BIN_EXE_convoke");
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/resources.py");

/// Asks a server on its standard streams, and returns everything it wrote there.
fn ask(scene: &Scene, flags: &[&str], calls: &[(&str, Value)]) -> Vec<Value> {
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let mut child =
        scene.command(&[&["mcp", "serve"], flags].concat()).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut all = Vec::new();
    let mut request = |id: usize, method: &str, params: &Value| {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(stdin, "{message}").unwrap();
        loop {
            let line = answers.next().unwrap().unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            let is_it = answer["id"] == id;
            all.push(answer);
            if is_it {
                return;
            }
        }
    };
    request(0, "initialize", &hello);
    for (index, (method, params)) in calls.iter().enumerate() {
        request(index + 1, method, params);
    }
    drop(stdin);
    assert!(answers.next().is_none(), "nothing but the protocol is written");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    all
}

fn call(tool: &str, arguments: &Value) -> (&'static str, Value) {
    ("tools/call", json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": 7 } }))
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

#[test]
fn what_only_looks_is_served_by_default() {
    let scene = Scene::new().file("a.txt", "one\n");
    let calls = [("tools/list", json!({})), call("read_file", &json!({ "path": "a.txt" }))];
    let all = ask(&scene, &[], &calls);
    let tools = all[1]["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["glob", "grep", "ls", "read_file"]);
    assert_eq!(text(&all[2]), "one\n");
}

#[test]
fn nobody_can_be_asked_so_what_would_be_asked_about_is_denied() {
    let scene = Scene::new();
    let write = [call("write_file", &json!({ "path": "b.txt", "content": "x" }))];
    let denied = ask(&scene, &["--tool", "write_file"], &write);
    let denied = denied.last().unwrap();
    assert_eq!(denied["result"]["isError"], true, "{denied:?}");
    assert!(text(denied).contains("permission"), "{denied:?}");
    assert!(!scene.project().join("b.txt").exists());
    ask(&scene, &["--tool", "write_file", "--mode", "auto_edit"], &write);
    assert_eq!(scene.read("b.txt"), "x");
    let unknown = scene.run(&["mcp", "serve", "--tool", "wriet_file"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

#[test]
fn secrets_of_this_machine_are_served_by_name_only() {
    let scene = Scene::new()
        .variable("TRACKER_TOKEN", "correct-horse-7-battery")
        .file("a.txt", "it is correct-horse-7-battery\n");
    let all = ask(&scene, &[], &[call("read_file", &json!({ "path": "a.txt" }))]);
    assert_eq!(text(&all[1]), "it is [secret TRACKER_TOKEN]\n");
}

/// A call of an agent is a run like any other: told while it works, and kept.
#[test]
fn an_agent_is_served_and_its_calls_are_runs() {
    let script: Vec<Reaction> = vec![
        Reply::text("I look.").call("read_file", json!({ "path": "a.txt" })).into(),
        Reply::default().call("complete_task", json!({ "result": "It says one." })).into(),
    ];
    let mut world = World::new(script);
    world.scene = world
        .scene
        .file(
            ".convoke/agents/worker.md",
            "---\nname: worker\ndescription: Works.\ntools: [read_file]\n---\nWork.\n",
        )
        .file("a.txt", "one\n")
        .variable("CONVOKE_TRUST_PROJECT", "1");
    let flags = ["--agent", "worker", "--model", "openai-chat/some-model"];
    let all = ask(&world.scene, &flags, &[call("worker", &json!({ "task": "Look." }))]);
    let told: String = all
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .filter_map(|message| message["params"]["message"].as_str())
        .collect();
    assert!(told.contains("I look.") && told.contains("a.txt"), "{all:?}");
    let answer = all.last().unwrap();
    assert_eq!(text(answer), "It says one.");
    let run = answer["result"]["structuredContent"]["run"].as_str().unwrap();
    let listed = world.scene.json(&["runs", "list", "--json"]);
    assert_eq!(listed[0]["run"], run, "{listed}");
    let unknown = world.scene.run(&["mcp", "serve", "--agent", "wroker"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

/// A server over HTTP, and the address it told.
struct Served {
    child: Child,
    url: String,
    _stderr: BufReader<ChildStderr>,
}

fn over_http(scene: &Scene, flags: &[&str]) -> Served {
    let words = [&["mcp", "serve", "--http", "127.0.0.1:0"], flags].concat();
    let mut child = scene.command(&words).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("serving at ").unwrap().to_owned();
    Served { child, url, _stderr: stderr }
}

#[test]
fn over_http_a_token_lets_clients_in_and_a_signal_ends_it() {
    const TOKEN: &str = "a-token-that-nobody-guesses-0123456789";
    let scene = Scene::new().variable("SERVE_TOKEN", TOKEN);
    let mut served = over_http(&scene, &["--token-env", "SERVE_TOKEN"]);
    let url = served.url.as_str();
    assert_eq!(scene.run(&["mcp", "add", "r", "--url", url]).code, Some(0));
    let refused = scene.run(&["mcp", "test", "r"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("hint: `convoke mcp login r` signs you in"), "{refused:?}");
    let header = ["--header", "Authorization=Bearer ${SERVE_TOKEN}", "--force"];
    assert_eq!(
        scene.run(&[&["mcp", "add", "r", "--url", url], &header[..]].concat()).code,
        Some(0)
    );
    let ready = scene.run(&["mcp", "test", "r"]);
    assert_eq!(ready.code, Some(0), "{ready:?}");
    assert!(!ready.shown().contains(TOKEN), "{ready:?}");
    let pid = Pid::from_child(&served.child);
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(served.child.wait().unwrap().code(), Some(143));
}

#[test]
fn without_a_token_nobody_else_is_let_in() {
    let scene = Scene::new();
    let ran = scene.run(&["mcp", "serve", "--http", "0.0.0.0:0"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("--token-file FILE"), "{ran:?}");
    let weak = scene.file("token", "abc\n");
    let ran = weak.run(&["mcp", "serve", "--http", "0.0.0.0:0", "--token-file", "token"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn a_resource_is_attached_to_a_message() {
    let places = ["/usr/bin/python3", "/usr/local/bin/python3"];
    let Some(python) = places.into_iter().find(|place| std::path::Path::new(place).exists()) else {
        return skip("python3", "the server of this test is written in it");
    };
    let world = World::new(vec![Reply::text("Milk.").into()]);
    let scene = &world.scene;
    let added = scene.run(&["mcp", "add", "notes", "--", python, FIXTURE]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let chat = ["chat", "--model", "openai-chat/some-model"];
    let said = "/mcp\nsee @notes:note://gone\nwhat is in @notes:note://today?\n";
    let ran = scene.run_with(said.as_bytes(), &chat);
    assert!(ran.stdout.contains("Milk."), "{ran:?}");
    assert!(ran.stderr.contains("notes  0 tools  configured"), "{ran:?}");
    assert!(ran.stderr.contains("error: `notes:note://gone` cannot be read"), "{ran:?}");
    assert!(ran.stderr.contains("there is no such thing here"), "{ran:?}");
    let request = world.server.requests().pop().unwrap();
    let body = String::from_utf8(request.body.clone()).unwrap();
    assert!(
        body.contains("From the MCP server notes:\\n[resource note://today]\\nbuy milk"),
        "{body}"
    );
    assert_eq!(world.requests(), 1, "what cannot be read is not sent");
}

/// A server that serves itself does not start itself for ever.
#[test]
fn serving_starts_no_server() {
    let scene = Scene::new();
    let add = ["mcp", "add", "self", "--", CONVOKE, "mcp", "serve", "--tool", "read_file"];
    assert_eq!(scene.run(&add).code, Some(0));
    let all = ask(&scene, &[], &[("tools/list", json!({}))]);
    assert_eq!(all[1]["result"]["tools"].as_array().unwrap().len(), 4);
}
