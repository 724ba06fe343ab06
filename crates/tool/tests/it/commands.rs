//! Tools that are programs, with real processes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use convoke_core::{CallOutcome, ErrorKind, Kind, ToolSpec};
use convoke_tool::{CallOptions, CommandTool, SessionEnvironment, ToolExecutor, UnconfinedSpawner};
use serde_json::{Value, json};

use crate::support::{Bench, bench, call, empty};

fn command(command: &[&str]) -> CommandTool {
    let mut spec = ToolSpec::new("script", "Runs a script.", Kind::Execute);
    spec.parameters =
        json!({ "type": "object", "properties": { "word": { "type": "string" } } }).into();
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    CommandTool::new(spec, command).environment(BTreeMap::from([("EXTRA".into(), "given".into())]))
}

fn script(text: &str) -> CommandTool {
    command(&["sh", "-c", text])
}

fn executor(tool: CommandTool) -> (ToolExecutor, Bench) {
    let variables = [("PATH", "/usr/bin:/bin"), ("API_KEY", "secret")];
    let environment =
        SessionEnvironment::new(variables.map(|(name, value)| (name.into(), value.into())));
    let bench = bench(empty().spawner(Arc::new(UnconfinedSpawner)).environment(environment));
    bench.registry.register(tool).unwrap();
    (bench.builder.clone().build(), bench)
}

async fn run(text: &str, arguments: Value) -> convoke_core::ToolResult {
    executor(script(text)).0.execute(call("script", arguments)).await
}

#[tokio::test]
async fn arguments_go_in_and_json_or_text_comes_out() {
    let echoed = run("cat", json!({ "word": "hi" })).await;
    assert_eq!(echoed.value(), Some(&json!({ "word": "hi" })));
    let text = run("echo plain \"$EXTRA\" \"[$API_KEY]\"", json!({})).await;
    assert_eq!(text.value(), Some(&json!("plain given []\n")), "credentials are not inherited");
}

#[tokio::test]
async fn an_exit_code_is_a_failure_that_keeps_the_output() {
    let result = run("echo half; echo why >&2; exit 3", json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Failed));
    assert!(result.text().contains("exit status: 3: why"), "{}", result.text());
    assert!(
        matches!(result.outcome, CallOutcome::Failed { partial: Some(value), .. } if value == json!("half\n"))
    );
}

#[tokio::test]
async fn a_missing_program_is_not_found() {
    let result =
        executor(command(&["no-such-program-here"])).0.execute(call("script", json!({}))).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::NotFound));
    assert!(result.text().contains("`no-such-program-here` not found"), "{}", result.text());
}

#[tokio::test]
async fn a_program_that_forks_and_ignores_signals_is_ended_whole() {
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    let text = format!(
        "trap '' TERM; (trap '' TERM; echo $$ >> {0}; sh -c 'echo $$ >> {0}; sleep 60' & wait) & echo started; wait; wait",
        pids.display()
    );
    let (executor, bench) = executor(script(&text));
    let options = CallOptions::timeout(Duration::from_millis(300));
    let result = executor.execute_with(call("script", json!({})), options).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    assert!(result.text().contains("started"), "{}", result.text());
    assert_eq!(crate::support::types(&bench.sink.events()).last().unwrap(), "tool_call_failed");
    let recorded = std::fs::read_to_string(&pids).unwrap();
    assert!(recorded.lines().count() >= 2, "{recorded}");
    for pid in recorded.lines() {
        assert!(ends(pid), "process {pid} is still there");
    }
}

/// Tells whether a process that was killed ends; on a busy machine it needs a moment to do so.
fn ends(pid: &str) -> bool {
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while std::time::Instant::now() < deadline {
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) if !stat.contains(") Z ") => std::thread::yield_now(),
            _ => return true,
        }
    }
    false
}

#[tokio::test]
async fn a_child_left_behind_does_not_hold_up_the_answer() {
    let started = std::time::Instant::now();
    let result = run("sleep 60 & echo done", json!({})).await;
    assert_eq!(result.value(), Some(&json!("done\n")));
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_program_that_never_stops_talking_is_cut_in_the_middle() {
    let result = run("head -c 5000000 /dev/zero | tr '\\0' x; echo end", json!({})).await;
    let text = result.value().unwrap().as_str().unwrap();
    assert!(text.len() < 1_100_000 && text.ends_with("xend\n"), "{}", text.len());
    assert!(text.contains("bytes are left out"));
}

#[tokio::test]
async fn programs_do_not_start_where_that_is_not_allowed() {
    let bench = bench(empty());
    bench.registry.register(script("echo no")).unwrap();
    let result = bench.builder.build().execute(call("script", json!({}))).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Permission));
}
