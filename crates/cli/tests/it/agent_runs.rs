//! Runs with agents, as the command tells of them: who asks, who acted, how much, and what goes on after an
//! interruption.

use convoke_testkit::{Reaction, Reply, Wire};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::pty::{Attached, Terminal};
use crate::run::World;
use crate::screen::Session;

const WORKER: &str = "---
name: worker
description: Works.
tools: [read_file, write_file, run_command]
---
You are the worker.
";

fn world(script: Vec<Reaction>) -> World {
    let mut world = World::new(script);
    world.scene = world
        .scene
        .file(".convoke/agents/worker.md", WORKER)
        .file("a.txt", "one\n")
        .variable("CONVOKE_TRUST_PROJECT", "1");
    world
}

fn delegate(prompt: &str) -> (&'static str, Value) {
    ("delegate_to_agent", json!({ "agent_name": "worker", "prompt": prompt }))
}

fn call((tool, arguments): (&str, Value)) -> Reply {
    Reply::default().call(tool, arguments)
}

fn done(result: &str) -> Reaction {
    call(("complete_task", json!({ "result": result }))).into()
}

/// Two agents of one name, each with a question: who is asked knows which is which, and what was answered is not
/// asked any more.
#[test]
fn agents_of_one_name_are_told_apart_and_an_answer_closes_its_question() {
    let writes = || -> Reaction { call(("run_command", json!({ "command": "echo x" }))).into() };
    let (tool, second) = delegate("two");
    let both: Reaction = call(delegate("one")).call(tool, second).into();
    let world = world(vec![
        both,
        writes(),
        writes(),
        done("written"),
        done("written"),
        Reply::text("Both wrote.").into(),
    ]);
    let ran = world.run(Wire::OpenAiChat, &["--on-ask", "park", "--output", "json", "Go."]);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    let id =
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["run"].as_str().unwrap().to_owned();
    let shown = world.scene.stdout(&["runs", "show", &id]);
    assert!(shown.contains("  main/worker  run_command"), "{shown}");
    assert!(shown.contains("  main/worker 2  run_command"), "{shown}");
    let questions = world.scene.json(&["runs", "show", &id, "--json"])["questions"].clone();
    let name = |index: usize| questions[index]["call"].as_str().unwrap().to_owned();
    assert!(shown.contains(&format!("convoke runs approve {id} {}", name(0))), "{shown}");
    let told = world.scene.run(&["runs", "approve", &id, &name(0)]);
    assert!(told.stderr.contains("one more waits for an answer"), "{told:?}");
    let shown = world.scene.stdout(&["runs", "show", &id]);
    assert!(shown.contains("1 question is answered; the run hears it when it goes on"), "{shown}");
    assert_eq!(shown.matches("--always would allow").count(), 1, "{shown}");
    assert_eq!(world.scene.json(&["runs", "list", "--json"])[0]["openQuestions"], 1);
    assert_eq!(world.scene.run(&["runs", "approve", &id, &name(1)]).code, Some(0));
    let again = world.scene.run(&["runs", "approve", &id, &name(1)]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("have an answer"), "{again:?}");
    let ran = world.scene.run(&["runs", "resume", &id]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Both wrote.\n"), "{ran:?}");
    assert!(ran.stderr.contains("[worker 2]") && !ran.stderr.contains("[worker 3]"), "{ran:?}");
    let audit = world.scene.stdout(&["runs", "audit", &id]);
    assert!(audit.contains("main/worker  ") && audit.contains("main/worker 2"), "{audit}");
    assert_eq!(audit.matches("delegate_to_agent").count(), 2, "one row for a call: {audit}");
    assert!(!audit.contains("unfinished"), "{audit}");
    let story = world.scene.stdout(&["runs", "show", &id]);
    for raw in ["run resumed", "agent spawned", "turn ended", "agent waits", "deferred"] {
        assert!(!story.contains(raw), "{raw} in {story}");
    }
}

/// The report, the list, the story and the events say the same numbers.
/// codex#12488, #35027, goose#7877: each agent has its own numbers in the report.
#[test]
fn everybody_counts_the_same_calls_and_tokens() {
    let writes: Reaction = call(("write_file", json!({ "path": "c.txt", "content": "x" }))).into();
    let reads = || -> Reaction { call(("read_file", json!({ "path": "a.txt" }))).into() };
    let world = world(vec![
        call(delegate("one")).call("ls", json!({})).into(),
        reads(),
        writes,
        done("read"),
        Reply::text("It says one.").into(),
    ]);
    let ran = world.run(Wire::OpenAiChat, &["--output", "json", "--mode", "auto_edit", "Go."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let id = report["run"].as_str().unwrap();
    let listed = world.scene.json(&["runs", "list", "--json"])[0].clone();
    let shown = world.scene.json(&["runs", "show", id, "--json"]);
    let agent = &report["agents"][0];
    assert_eq!((&agent["agent"], &agent["status"]), (&json!("worker"), &json!("completed")));
    assert_eq!(agent["usage"]["inputTokens"], 300, "{agent}");
    let changed = report["task"]["ledger"]["changed"].to_string();
    assert!(changed.contains("c.txt"), "what agents changed is changed: {changed}");
    // The agent, `ls`, and two files.
    assert_eq!(report["toolCalls"], 4);
    assert_eq!(listed["toolCalls"], 4, "{listed}");
    assert!(world.scene.stdout(&["runs", "show", id]).contains("4 calls"), "{shown}");
    assert_eq!(listed["usage"], report["usage"]);
    assert_eq!(shown["report"]["usage"], report["usage"]);
}

/// Ctrl-C at a question is no answer: the same is asked when the run goes on.
#[test]
fn a_question_at_which_somebody_gave_up_is_asked_again() {
    let script = || -> Vec<Reaction> {
        vec![
            call(delegate("one")).into(),
            call(("write_file", json!({ "path": "b.txt", "content": "x" }))).into(),
            done("written"),
            Reply::text("The worker wrote.").into(),
        ]
    };
    let world = world(script());
    let words = ["run", "--model", "openai-chat/m", "Go."];
    let Some(mut here) = Session::start(&world.scene, &words) else { return };
    here.wait_until("the question", |text| text.contains("or say what to do instead:"));
    here.type_in("\u{3}");
    assert_eq!(here.end().1, Some(130));
    let listed = world.scene.json(&["runs", "list", "--json"])[0].clone();
    assert_eq!(listed["openQuestions"], 1, "{listed}");
    let ran = world.scene.run(&["runs", "resume", "--last", "--on-ask", "park"]);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    let id = listed["run"].as_str().unwrap();
    assert_eq!(world.scene.run(&["runs", "approve", id]).code, Some(2), "it has to be named");
    let shown = world.scene.json(&["runs", "show", id, "--json"]);
    let question = shown["questions"][0]["call"].as_str().unwrap().to_owned();
    assert_eq!(world.scene.run(&["runs", "approve", id, &question]).code, Some(0));
    let ran = world.scene.run(&["runs", "resume", id]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "The worker wrote.\n"), "{ran:?}");
    assert_eq!(world.scene.read("b.txt"), "x");
}

/// Ctrl-C while an agent works: the hint is true, the run goes on where it was, with the same agent.
#[test]
fn an_agent_that_was_interrupted_goes_on_with_its_run() {
    let world = world(vec![
        call(delegate("one")).into(),
        call(("run_command", json!({ "command": "echo at-work; sleep 100" }))).into(),
        done("It is done."),
        Reply::text("The worker is done.").into(),
    ]);
    let words = ["run", "--model", "openai-chat/m", "--mode", "full", "Go."];
    let mut terminal = Terminal::start(&world.scene, 100, Attached::All, &words);
    terminal.wait_for("at-work");
    terminal.signal(Signal::INT);
    let ended = terminal.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let listed = world.scene.json(&["runs", "list", "--json"])[0].clone();
    assert_ne!(listed["usage"]["inputTokens"], 0, "the agent's tokens count: {listed}");
    let ran = world.scene.run(&["runs", "resume", "--last", "--mode", "full"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "The worker is done.\n"), "{ran:?}");
    assert_eq!(world.requests(), 4, "nobody was asked the same twice");
    let last: Value = serde_json::from_slice(&world.server.requests().pop().unwrap().body).unwrap();
    let told = last["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(told.contains("It is done."), "the call has the agent's own result: {told}");
}
