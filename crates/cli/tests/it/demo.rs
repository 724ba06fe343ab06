//! The demo, its recording, and what happens when the world is not what was recorded.
//!
//! The recording is made here: a server gives the answers below to `convoke run --record`. After a change
//! of the system prompt, of a tool's schema or of what a tool returns, set `CONVOKE_UPDATE_DEMO=1` and
//! run this test to write it anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use convoke_testkit::{ModelServer, Reaction, Reply};
use serde_json::json;

use crate::support::{Ran, Scene};

const PROMPT: &str =
    "The test of this project fails. Find out why, fix it, and show that it passes.";

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(path)
}

/// What the model says, turn by turn.
fn script() -> Vec<Reaction> {
    let run_test = Reply::default().call("run_command", json!({ "command": "sh test.sh" }));
    let found = json!({
        "summary": "`test.sh` compares slugs made by `slug.sh`. `slug.sh` turns each space into a dash with \
                    `tr ' ' '-'`, so that two spaces become two dashes, which the test does not expect.",
        "exploration_trace": ["read slug.sh", "read test.sh"],
        "relevant_locations": [{
            "file_path": "slug.sh",
            "reasoning": "It makes the slugs.",
            "key_symbols": ["tr"],
        }],
    });
    let turns = [
        Reply::text("I'll run the test, and have somebody look how the project works.\n")
            .call("run_command", json!({ "command": "sh test.sh" }))
            .call(
                "delegate_to_agent",
                json!({
                    "agent_name": "codebase_investigator",
                    "prompt": "How are slugs made here, and what does test.sh expect of them?",
                }),
            ),
        Reply::default()
            .call("read_file", json!({ "path": "slug.sh" }))
            .call("read_file", json!({ "path": "test.sh" })),
        Reply::default().call("complete_task", json!({ "report": found })),
        Reply::text(
            "Two spaces become two dashes: `tr` translates each space on its own. With `-s` it squeezes \
             them into one.\n",
        )
        .call(
            "edit_file",
            json!({
                "path": "slug.sh", "old_string": "tr ' ' '-'", "new_string": "tr -s ' ' '-'",
            }),
        ),
        run_test,
        Reply::text(
            "**The test passes now.** The cause was in `slug.sh`: several spaces in a row became several \
             dashes.\n\n\
             - Changed: `tr ' ' '-'` is `tr -s ' ' '-'`, which squeezes repeated spaces.\n\
             - Checked: `sh test.sh` reports `ok` for all three titles.\n",
        ),
    ];
    turns.into_iter().map(Reaction::from).collect()
}

/// A scene whose project is the sample.
fn sample() -> Scene {
    let copy = |scene: Scene, name: &str| {
        let content = fs::read(here("project").join(name)).unwrap();
        scene.file(name, content)
    };
    ["AGENTS.md", "README.md", "slug.sh", "test.sh"].into_iter().fold(Scene::new(), copy)
}

fn passes(project: &Path) -> bool {
    Command::new("sh").arg("test.sh").current_dir(project).output().unwrap().status.success()
}

/// Records the demo as it would be today.
fn record() -> (Ran, String) {
    let threads = tokio::runtime::Runtime::new().unwrap();
    let server = threads.block_on(ModelServer::start(script())).unwrap();
    let url = format!("model.providers.demo.baseUrl={}/v1", server.url());
    let scene = sample();
    let ran = scene.run(&[
        "run",
        "--mode",
        "full",
        "--model",
        "demo/recorded",
        "--record",
        "../fresh.jsonl",
        "--set",
        &url,
        PROMPT,
    ]);
    (ran, scene.read("../fresh.jsonl"))
}

#[test]
fn the_recording_is_what_would_be_recorded_today() {
    let (ran, fresh) = record();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let kept = here("recording.jsonl");
    if std::env::var_os("CONVOKE_UPDATE_DEMO").is_some() {
        fs::write(&kept, &fresh).unwrap();
    }
    assert_eq!(fs::read_to_string(kept).unwrap(), fresh, "set CONVOKE_UPDATE_DEMO=1 to update it");
}

#[test]
fn the_demo_mends_a_test_that_fails() {
    let scene = Scene::new();
    let ran = scene.run(&["demo", "--keep", "slug"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("The test passes now."), "{}", ran.stdout);
    assert!(!passes(&sample().project()), "it failed before");
    assert!(passes(&scene.project().join("slug")), "it passes after");
}

#[test]
fn a_tool_that_returns_something_else_makes_the_replay_fail() {
    let recording = here("recording.jsonl");
    let replay = ["run", "--mode", "full", "--replay", recording.to_str().unwrap(), PROMPT];
    assert_eq!(sample().run(&replay).code, Some(0));
    let scene = sample();
    let changed = scene.read("slug.sh").replace("first post", "first book");
    let ran = scene.file("slug.sh", changed).run(&replay);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("first book"), "it shows the difference: {}", ran.stderr);
}

#[test]
fn a_directory_that_is_there_is_not_touched() {
    let ran = Scene::new().run(&["demo", "--keep", "."]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("is there already"), "{}", ran.stderr);
}
