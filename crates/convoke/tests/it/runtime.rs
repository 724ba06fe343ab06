//! A runtime does what its configuration says.

use std::collections::BTreeMap;
use std::time::Duration;

use convoke::config::Sources;
use convoke::prelude::*;
use convoke::{RuntimeError, config};

/// Makes a runtime in a directory, from the text of a user's file.
fn runtime(directory: &std::path::Path, text: &str) -> Result<Runtime, RuntimeError> {
    runtime_with(directory, text, [("PATH", "/usr/bin:/bin")])
}

/// The same with these variables.
fn runtime_with<const N: usize>(
    directory: &std::path::Path,
    text: &str,
    variables: [(&str, &str); N],
) -> Result<Runtime, RuntimeError> {
    let file = directory.join("user.yml");
    std::fs::write(&file, text).unwrap();
    let mut sources = Sources::new(directory);
    sources.user_file = Some(file);
    sources.project_directory = None;
    let loaded = config::load(&sources).unwrap();
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let variables = BTreeMap::from(variables);
    Runtime::builder(directory).config(loaded.config).environment(variables).build()
}

fn names(view: &ToolView) -> Vec<String> {
    view.list().iter().map(|tool| tool.spec().name.clone()).collect()
}

async fn call(runtime: &Runtime, tool: &str, arguments: serde_json::Value) -> ToolResult {
    runtime.executor().build().execute(ToolCall::new("c", tool, arguments)).await
}

#[test]
fn few_tools_are_offered_and_all_can_be_called() {
    let directory = tempfile::tempdir().unwrap();
    let plain = runtime(directory.path(), "").unwrap();
    assert_eq!(
        names(plain.offered()),
        ["edit_file", "glob", "grep", "ls", "read_file", "run_command", "write_file"]
    );
    assert_eq!(names(plain.callable()).len(), 23);
    let chosen = runtime(
        directory.path(),
        "tools: { enabled: [grep, 'http_*', 'category:data'], exclude: [http_post] }",
    )
    .unwrap();
    assert_eq!(
        names(chosen.offered()),
        [
            "base64_decode",
            "base64_encode",
            "grep",
            "http_get",
            "http_request",
            "json_parse",
            "json_stringify"
        ]
    );
    assert!(chosen.callable().get("http_post").is_none());
    let error = runtime(directory.path(), "tools: { enabled: [gerp] }").unwrap_err();
    assert!(error.to_string().contains("no tool is named `gerp`; did you mean `grep`?"), "{error}");
}

#[tokio::test]
async fn permission_follows_the_kinds() {
    let directory = tempfile::tempdir().unwrap();
    let careful = runtime(directory.path(), "").unwrap();
    assert!(call(&careful, "ls", json!({})).await.success());
    let write = json!({ "path": "a", "content": "x" });
    let refused = call(&careful, "write_file", write.clone()).await;
    assert!(refused.text().contains("nobody can be asked here"), "{}", refused.text());
    let run = json!({ "command": "echo hi" });
    assert_eq!(
        call(&careful, "run_command", run.clone()).await.error_kind(),
        Some(ErrorKind::Permission)
    );
    let open =
        runtime(directory.path(), "policy: { kinds: { edit: allow, execute: allow } }").unwrap();
    assert!(call(&open, "write_file", write).await.success());
    assert_eq!(call(&open, "run_command", run).await.text(), "hi\n");
}

#[tokio::test]
async fn rules_decide_before_the_kinds_and_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let text = "\
policy:
  kinds: { execute: ask }
  rules:
    - { effect: allow, command: echo * }
    - { effect: deny, path: 'secret/**', reason: that is secret }
";
    let ruled = runtime(directory.path(), text).unwrap();
    let run = |line: &str| json!({ "command": line });
    assert_eq!(call(&ruled, "run_command", run("echo hi")).await.text(), "hi\n");
    let asked = call(&ruled, "run_command", run("echo hi; true")).await;
    assert_eq!(asked.error_kind(), Some(ErrorKind::Permission));
    std::fs::create_dir(directory.path().join("secret")).unwrap();
    std::fs::write(directory.path().join("secret/key"), "x").unwrap();
    let denied = call(&ruled, "read_file", json!({ "path": "secret/key" })).await;
    assert!(denied.text().contains("that is secret"), "{}", denied.text());
    let tool = ruled.callable().get("read_file").unwrap();
    let arguments = json!({ "path": "./x/../secret/key" });
    let decision =
        ruled.judge(tool.as_ref(), &arguments, &ruled.standing("main").unwrap()).unwrap();
    let rule = decision.source.to_string();
    assert!(rule.starts_with("user rule 2 (") && rule.ends_with("user.yml:5:7)"), "{rule}");
}

#[tokio::test]
async fn a_rule_on_a_file_holds_for_its_other_names() {
    let directory = tempfile::tempdir().unwrap();
    let text = "policy: { rules: [{ effect: deny, path: 'secret/**' }] }";
    let ruled = runtime(directory.path(), text).unwrap();
    std::fs::create_dir(directory.path().join("secret")).unwrap();
    std::fs::write(directory.path().join("secret/key"), "x").unwrap();
    std::os::unix::fs::symlink("secret", directory.path().join("link")).unwrap();
    let through = call(&ruled, "read_file", json!({ "path": "link/key" })).await;
    assert_eq!(through.error_kind(), Some(ErrorKind::Permission), "{}", through.text());
}

#[tokio::test]
async fn reading_a_variable_follows_the_policy_and_shows_no_credential() {
    let directory = tempfile::tempdir().unwrap();
    let text = "policy: { rules: [
        { effect: deny, tool: get_env, args: { key: 'INTERNAL_*' }, reason: that is ours },
        { effect: ask, tool: get_env, args: { key: HOSTNAME } } ] }";
    let variables = [
        ("INTERNAL_HOST", "db7"),
        ("HOSTNAME", "here"),
        ("LANG", "C.UTF-8"),
        ("DEPLOY_TOKEN", "0123-4567-89ab"),
    ];
    let ruled = runtime_with(directory.path(), text, variables).unwrap();
    let read = async |key: &str| call(&ruled, "get_env", json!({ "key": key })).await;
    assert_eq!(read("LANG").await.value().unwrap()["value"], "C.UTF-8");
    let denied = read("INTERNAL_HOST").await;
    assert_eq!(denied.error_kind(), Some(ErrorKind::Permission));
    assert!(denied.text().contains("that is ours"), "{}", denied.text());
    let asked = read("HOSTNAME").await;
    assert_eq!(asked.error_kind(), Some(ErrorKind::Permission), "nobody can be asked here");
    assert_eq!(read("DEPLOY_TOKEN").await.value().unwrap()["value"], "***");
}

#[tokio::test]
async fn roots_limits_and_timeouts_are_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("src")).unwrap();
    let text = "tools: { allowedPaths: [./src], timeout: 1234, timeouts: { tool: { grep: 7 } }, maxOutputBytes: 300 }";
    let limited = runtime(directory.path(), text).unwrap();
    assert!(call(&limited, "ls", json!({ "path": "src" })).await.success());
    assert!(call(&limited, "ls", json!({ "path": "." })).await.text().contains("Access denied"));
    let spec = |name: &str| limited.registry().get(name).unwrap().spec().clone();
    assert_eq!(limited.timeout_of(&spec("ls")), Duration::from_millis(1234));
    assert_eq!(limited.timeout_of(&spec("grep")), Duration::from_millis(7));
    assert_eq!(limited.timeout_of(&spec("http_get")), Duration::from_mins(1));
    let long = call(&limited, "json_stringify", json!({ "data": "x".repeat(1000) })).await;
    assert!(long.truncated.is_some());
    let missing = runtime(directory.path(), "tools: { allowedPaths: [./nope] }").unwrap_err();
    assert!(missing.to_string().contains("nope` cannot be opened"), "{missing}");
    let nothing = runtime(directory.path(), "tools: { allowedPaths: [] }").unwrap();
    assert!(call(&nothing, "ls", json!({})).await.text().contains("no path is allowed"));
}

#[tokio::test]
async fn a_command_in_the_configuration_is_a_tool_like_any_other() {
    let directory = tempfile::tempdir().unwrap();
    let text = "
policy: { kinds: { execute: allow } }
tools:
  commands:
    - { name: mirror, description: Mirrors., command: [cat], kind: execute, parameters: { properties: { a: { type: integer } } } }
";
    let runtime = runtime(directory.path(), text).unwrap();
    assert_eq!(call(&runtime, "mirror", json!({ "a": 1 })).await.value(), Some(&json!({ "a": 1 })));
    assert_eq!(
        call(&runtime, "mirror", json!({ "a": "x" })).await.error_kind(),
        Some(ErrorKind::Validation)
    );
    assert!(names(runtime.offered()).contains(&"mirror".to_owned()));
}
