//! How an agent that works by itself ends: with the codes that every run has.

use convoke_testkit::{Failure, Reaction, Reply};
use serde_json::{Value, json};

use crate::run::World;
use crate::support::Ran;

const WORKER: &str = "---
name: worker
description: Works.
tools: [read_file, write_file, run_command]
max_turns: 3
---
You are the worker.
";

fn run(script: Vec<Reaction>, flags: &[&str]) -> Ran {
    let mut world = World::new(script);
    world.scene = world
        .scene
        .file(".convoke/agents/worker.md", WORKER)
        .file("a.txt", "one\n")
        .variable("CONVOKE_TRUST_PROJECT", "1");
    let model = ["--model", "openai-chat/some-model", "--set", "model.retries=0"];
    let usual = [&["agents", "run", "worker"], &model[..], &["--output", "json"]].concat();
    world.scene.run(&[&usual[..], flags, &["Go."]].concat())
}

fn call(tool: &str, arguments: Value) -> Reaction {
    Reply::default().call(tool, arguments).into()
}

fn look() -> Reaction {
    call("read_file", json!({ "path": "a.txt" }))
}

fn done() -> Reaction {
    call("complete_task", json!({ "result": "Done." }))
}

#[track_caller]
fn ends(ran: &Ran, code: i32, status: &str, cause: &str) {
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(
        (ran.code, &report["status"], &report["cause"], &report["exitCode"]),
        (Some(code), &json!(status), &json!(cause), &json!(code)),
        "{ran:?}"
    );
}

#[test]
fn one_that_is_done_ends_with_0() {
    ends(&run(vec![look(), done()], &[]), 0, "completed", "goal");
}

#[test]
fn one_that_a_limit_cuts_ends_with_4_also_where_it_gave_something() {
    let other = |path: &str| call("read_file", json!({ "path": path }));
    let script = || vec![look(), other("b.txt"), other("c.txt"), other("d.txt")];
    ends(&run(script(), &[]), 4, "limited", "max_turns");
    let mut saved = script();
    saved.truncate(2);
    saved.push(done());
    let ran = run(saved, &[]);
    ends(&ran, 4, "limited", "max_turns");
    assert!(ran.stdout.contains("\"recovered\": true"), "{ran:?}");
    let calls = run(vec![look(), other("b.txt"), done()], &["--max-tool-calls", "1"]);
    assert_eq!(calls.code, Some(4), "{calls:?}");
}

#[test]
fn one_that_makes_no_progress_ends_with_5() {
    let same: Vec<Reaction> = (0..12).map(|_| look()).collect();
    let flags = ["--set", "agent.maxRepeats=2", "--set", "agent.onStuck=end"];
    let more = ["--set", "agents.overrides.worker.maxTurns=12", "--max-turns", "12"];
    ends(&run(same, &[flags, more].concat()), 5, "stuck", "loop");
}

#[test]
fn one_that_was_refused_ends_with_3() {
    let write = call("write_file", json!({ "path": "b.txt", "content": "x" }));
    ends(&run(vec![write, done()], &[]), 3, "denied", "denied");
    let command = call("run_command", json!({ "command": "git push" }));
    let never = ["--mode", "plan"];
    assert_eq!(run(vec![command, done()], &never).code, Some(3));
}

#[test]
fn one_that_did_something_beside_what_was_refused_ends_with_0_and_says_so() {
    let (read, write) = (json!({ "path": "a.txt" }), json!({ "path": "b.txt", "content": "x" }));
    let orders = [
        Reply::default().call("read_file", read.clone()).call("write_file", write.clone()),
        Reply::default().call("write_file", write).call("read_file", read),
    ];
    for both in orders {
        let ran = run(vec![both.into(), done()], &[]);
        ends(&ran, 0, "completed", "goal");
        assert!(ran.stderr.contains("1 denied"), "{ran:?}");
    }
}

#[test]
fn one_whose_model_does_not_answer_ends_with_6() {
    let ran = run(vec![Reaction::failure(Failure::WrongKey)], &[]);
    ends(&ran, 6, "failed", "model_unavailable");
}
