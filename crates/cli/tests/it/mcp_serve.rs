//! `convoke mcp serve`: what others get of it, and what they do not.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, Stdio};

use convoke_testkit::{Reaction, Reply};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::run::World;
use crate::support::Scene;
use crate::waiting::{Lines, python};

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
    let runs = listed.as_array().unwrap();
    assert_eq!(runs.len(), 2, "what was called, and the run of the agent: {listed}");
    assert!(runs.iter().any(|listed| listed["run"] == run), "{listed}");
    let shown = world.scene.json(&["runs", "show", "--last", "--json"]);
    assert_eq!(shown["run"], run, "a server is nobody's last run");
    let unknown = world.scene.run(&["mcp", "serve", "--agent", "wroker"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

/// A server over HTTP, and the address it told.
struct Served {
    child: Child,
    url: String,
    stderr: BufReader<ChildStderr>,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn over_http(scene: &Scene, flags: &[&str]) -> Served {
    let words = [&["mcp", "serve", "--http", "127.0.0.1:0"], flags].concat();
    let mut child = scene.command(&words).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("serving at ").unwrap().to_owned();
    Served { child, url, stderr }
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
    assert_eq!(refused.stderr.matches("`convoke mcp login r`").count(), 1, "{refused:?}");
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

/// Returns the status of a request, with these further lines of its head.
fn status(address: &str, host: &str, more: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!("GET /mcp HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn serve_over_http_makes_a_token_and_lets_in_only_clients_that_send_it() {
    let scene = Scene::new();
    let mut served = over_http(&scene, &[]);
    let mut said = String::new();
    served.stderr.read_line(&mut said).unwrap();
    let header = said.split('`').nth(1).unwrap().to_owned();
    let mut snippet = String::new();
    served.stderr.read_line(&mut snippet).unwrap();
    let address = served.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    assert_eq!(status(address, address, ""), "401");
    assert_eq!(status(address, address, "Authorization: Bearer 0123456789abcdef\r\n"), "401");
    assert_ne!(status(address, address, &format!("{header}\r\n")), "401");
    let other = over_http(&scene, &[]);
    let address = other.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    assert_eq!(status(address, address, &format!("{header}\r\n")), "401", "each has its own");
    // The snippet is what clients read.
    let scene = scene.file("servers.json", snippet);
    let imported = scene.run(&["mcp", "import", "servers.json", "--yes"]);
    let imported = match imported.code {
        Some(0) => imported,
        _ => scene.run(&["mcp", "import", "servers.json"]),
    };
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let ready = scene.run(&["mcp", "test", "convoke"]);
    assert_eq!(ready.code, Some(0), "{ready:?}");
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
    assert!(!ran.stderr.contains("serving at"), "it does not: {ran:?}");
}

#[test]
fn a_resource_is_attached_to_a_message() {
    let Some(python) = python() else { return };
    let world = World::new(vec![Reply::text("Milk.").into()]);
    let scene = &world.scene;
    let added = scene.run(&["mcp", "add", "notes", "--", python, FIXTURE]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let chat = ["chat", "--model", "openai-chat/some-model"];
    let said =
        "/mcp\nsee @notes:note://gone\nsee @notes:note://{day}.\nwhat is in @notes:note://today?\n";
    let ran = scene.run_with(said.as_bytes(), &chat);
    assert!(ran.stdout.contains("Milk."), "{ran:?}");
    assert!(ran.stderr.contains("notes  0 tools  configured"), "{ran:?}");
    assert!(ran.stderr.contains("error: `notes:note://gone` cannot be read"), "{ran:?}");
    assert!(ran.stderr.contains("there is no such thing here"), "{ran:?}");
    assert!(ran.stderr.contains("error: `notes:note://{day}` cannot be read"), "{ran:?}");
    assert!(ran.stderr.contains("write a value in the place of what stands in braces"), "{ran:?}");
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

/// What clients do can be looked up, also what they were not allowed to.
#[test]
fn calls_of_clients_are_in_the_audit_and_cannot_go_on() {
    let scene = Scene::new();
    let calls = [
        call("write_file", &json!({ "path": "b.txt", "content": "x" })),
        call("run_command", &json!({ "command": "true" })),
    ];
    let flags = ["--tool", "write_file", "--tool", "run_command", "--mode", "auto_edit"];
    ask(&scene, &flags, &calls);
    let audit = scene.stdout(&["runs", "audit", "--json"]);
    let rows: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |tool: &str| rows.iter().find(|row| row["tool"] == tool).unwrap();
    assert_eq!(of("write_file")["outcome"], "completed", "{audit}");
    assert_eq!(of("write_file")["arguments"]["path"], "b.txt", "{audit}");
    assert_eq!(of("run_command")["outcome"], "denied", "{audit}");
    assert_eq!(rows[0]["origin"]["served"], true, "{audit}");
    let run = rows[0]["run"].as_str().unwrap();
    assert!(scene.stdout(&["runs", "audit"]).contains("for MCP clients"));
    let shown = scene.stdout(&["runs", "show", run]);
    assert!(shown.contains("b.txt"), "{shown}");
    for words in [
        &["runs", "resume", run, "more"][..],
        &["runs", "fork", run, "more"],
        &["runs", "replay", run],
        &["chat", "--resume", run],
    ] {
        let refused = scene.run(words);
        assert_eq!(refused.code, Some(2), "{words:?}: {refused:?}");
        assert!(refused.stderr.contains("no agent's"), "{words:?}: {refused:?}");
    }
    let verified = rows.iter().find(|row| row["type"] == "verification").unwrap();
    assert_eq!(verified["status"], "intact", "{audit}");
    assert_eq!(verified["vouchedUpTo"], verified["events"], "it is on disk to its end: {audit}");
    let last = scene.run(&["runs", "resume", "--last", "more"]);
    assert!(last.stderr.contains("there are no runs"), "{last:?}");
}

#[test]
fn tools_of_a_server_that_was_never_asked_are_served_and_announced() {
    let scene = Scene::new();
    let Some(lines) = Lines::add(&scene) else { return };
    let words = ["mcp", "serve", "--tool", "mcp__slow__*"];
    let mut child = scene.command(&words).stdin(Stdio::piped()).spawn().unwrap();
    let mut server = lines.held();
    let mut stdin = child.stdin.take().unwrap();
    let mut heard = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |wanted: &dyn Fn(&Value) -> bool| {
        let messages = heard.by_ref().map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        messages.into_iter().find(|message: &Value| wanted(message)).unwrap()
    };
    let hello = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        },
    });
    let list = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    writeln!(stdin, "{hello}\n{ready}\n{}", list(1)).unwrap();
    let none = until(&|message| message["id"] == 1);
    assert_eq!(none["result"]["tools"], json!([]));
    server.go_on();
    until(&|message| message["method"] == "notifications/tools/list_changed");
    writeln!(stdin, "{}", list(2)).unwrap();
    let some = until(&|message| message["id"] == 2);
    assert_eq!(some["result"]["tools"][0]["name"], "mcp__slow__wait", "{some}");
    drop(stdin);
    assert_eq!(server.next(), None, "it ends with the one that started it");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_server_is_known_by_its_address_and_by_names_it_is_given() {
    let scene = Scene::new();
    let served = over_http(&scene, &["--allow-host", "tools.example"]);
    let address = served.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let status = |host: &str| status(address, host, "");
    for host in [address, "tools.example", "tools.example:443"] {
        assert_ne!(status(host), "403", "{host}");
    }
    assert_eq!(status("evil.example"), "403");
    for wrong in ["--allow-host=a b", "--allow-origin=nowhere"] {
        let ran = scene.run(&["mcp", "serve", "--http", "127.0.0.1:0", wrong]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(!ran.stderr.contains("serving at"), "{ran:?}");
    }
}
