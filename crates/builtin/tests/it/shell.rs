//! Commands: what they return, and that they end.

use std::time::{Duration, Instant};

use convoke_core::{CallOutcome, ErrorKind};
use convoke_tool::CallOptions;
use serde_json::json;

use crate::support::Workspace;

#[tokio::test]
async fn a_command_returns_output_and_exit_code() {
    let workspace = Workspace::new();
    workspace.write("sub/here", "");
    let result =
        workspace.call("run_command", json!({ "command": "echo out; echo err >&2" })).await;
    assert_eq!(
        result.value(),
        Some(&json!({ "exitCode": 0, "stdout": "out\n", "stderr": "err\n" }))
    );
    assert_eq!(result.text(), "out\n[stderr]\nerr\n");
    let there = workspace
        .value("run_command", json!({ "command": "ls", "working_directory": "sub" }))
        .await;
    assert_eq!(there["stdout"], "here\n");
    assert_eq!(
        workspace.call("run_command", json!({ "command": "true" })).await.text(),
        "(no output)"
    );
}

#[tokio::test]
async fn a_command_that_fails_is_a_failure_with_its_output() {
    let workspace = Workspace::new();
    let result = workspace.call("run_command", json!({ "command": "echo half; exit 3" })).await;
    assert_eq!(result.error().unwrap().message, "the command ended with exit status: 3");
    assert!(
        matches!(&result.outcome, CallOutcome::Failed { partial: Some(value), .. } if value["exitCode"] == 3)
    );
    assert!(result.text().ends_with("half\n"), "{}", result.text());
    let killed = workspace.call("run_command", json!({ "command": "kill -9 $$" })).await;
    assert!(killed.text().contains("signal: 9"), "{}", killed.text());
}

/// goose#2337, #1075: nothing of a command outlives it.
#[tokio::test]
async fn a_command_that_forks_and_ignores_sigterm_is_ended_in_time_with_what_it_said() {
    let workspace = Workspace::new();
    let command =
        "trap '' TERM; (trap '' TERM; sleep 60) & echo begun; echo $! > child; sleep 60; sleep 60";
    let started = Instant::now();
    let result = workspace
        .call_with(
            "run_command",
            json!({ "command": command }),
            CallOptions::timeout(Duration::from_millis(300)),
        )
        .await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    assert!(result.text().contains("begun"), "{}", result.text());
    assert!(started.elapsed() < Duration::from_secs(5));
    let child = workspace.read("child");
    assert!(ends(child.trim()), "the child lives");
}

#[tokio::test]
async fn its_own_time_limit_counts() {
    let workspace = Workspace::new();
    let result =
        workspace.call("run_command", json!({ "command": "sleep 60", "timeout_ms": 200 })).await;
    assert_eq!(result.error().unwrap().message, "Tool execution timed out after 200ms");
}

/// goose PR #10348: a command that nobody gave a time limit has one.
#[tokio::test(start_paused = true)]
async fn a_command_has_a_time_limit_where_nobody_says_one() {
    let workspace = Workspace::new();
    let result = workspace.call("run_command", json!({ "command": "sleep 60" })).await;
    assert_eq!(result.error().unwrap().message, "Tool execution timed out after 120000ms");
}

#[tokio::test]
async fn there_is_no_input_and_no_terminal() {
    let workspace = Workspace::new();
    let result = workspace
        .call("run_command", json!({ "command": "cat; tty; read -r x || echo closed" }))
        .await;
    assert!(
        result.text().contains("not a tty") && result.text().contains("closed"),
        "{}",
        result.text()
    );
}

#[tokio::test]
async fn strange_commands_are_refused() {
    let workspace = Workspace::new();
    for (arguments, says) in [
        (json!({ "command": "  " }), "`command` is empty"),
        (json!({ "command": "a\0b" }), "NUL"),
        (json!({ "command": "ls", "working_directory": "/etc" }), "Access denied"),
        (json!({ "command": "ls", "working_directory": "nope" }), "not found"),
    ] {
        let (_, message) = workspace.error("run_command", arguments.clone()).await;
        assert!(message.contains(says), "{arguments}: {message}");
    }
}

/// Tells whether a process that was killed ends; on a busy machine it needs a moment to do so.
fn ends(pid: &str) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) if !stat.contains(") Z ") => std::thread::yield_now(),
            _ => return true,
        }
    }
    false
}
