//! What a rule denies stays denied, whoever is given the directory above it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use convoke::Programs;
use convoke::config::{self, Sources};
use convoke::core::Mode;
use convoke::prelude::*;
use convoke::tools::{Authorizer, Decision, Request};
use convoke_testkit::skip;

const TOKEN: &str = "TOKEN=sesame";

/// A home with a key and, in it, a project with an `.env`.
struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for (name, text) in [
            ("project/.env", TOKEN),
            ("project/src/main.rs", "// TOKEN is read from .env"),
            ("project/private/notes", TOKEN),
            (".ssh/id", TOKEN),
        ] {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self { home }
    }

    fn project(&self) -> std::path::PathBuf {
        self.home.path().join("project").canonicalize().unwrap()
    }

    fn runtime(&self, mode: Mode, text: &str) -> Runtime {
        let file = self.home.path().join("user.yml");
        std::fs::write(&file, text).unwrap();
        let mut sources = Sources::new(self.project());
        sources.user_file = Some(file);
        sources.home = Some(self.home.path().to_owned());
        let loaded = config::load(&sources).unwrap();
        let variables = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        Runtime::builder(self.project())
            .config(loaded.config)
            .home(Some(self.home.path().to_owned()))
            .mode(mode)
            .environment(BTreeMap::from(variables))
            .build()
            .unwrap()
    }
}

#[derive(Debug)]
struct AllowsAll;

impl Authorizer for AllowsAll {
    fn decide(&self, _: &Request<'_>) -> Decision {
        Decision::Allow { rule: "everything".to_owned() }
    }
}

async fn call(runtime: &Runtime, tool: &str, arguments: serde_json::Value) -> ToolResult {
    runtime.executor().build().execute(ToolCall::new("c", tool, arguments)).await
}

#[tokio::test]
async fn a_search_over_the_parent_of_a_denied_file_leaves_it_out_and_says_so() {
    let place = Place::new();
    let text =
        "policy: { rules: [{ effect: deny, path: .env }, { effect: ask, path: 'private/**' }] }";
    let runtime = place.runtime(Mode::Default, text);
    for (tool, arguments) in [
        ("grep", json!({ "pattern": "TOKEN" })),
        ("grep", json!({ "pattern": "TOKEN", "path": "." })),
        ("grep", json!({ "pattern": "TOKEN", "path": place.project() })),
        ("grep", json!({ "pattern": "TOKEN", "include_ignored": true })),
        ("glob", json!({ "pattern": "**" })),
        ("list_files", json!({ "path": ".", "recursive": true })),
        ("ls", json!({})),
    ] {
        let result = call(&runtime, tool, arguments).await;
        let text = result.text();
        assert!(result.success(), "{tool}: {text}");
        assert!(!text.contains("sesame"), "{tool}: {text}");
        assert!(!text.lines().any(|line| line.trim() == ".env"), "{tool}: {text}");
        assert!(!text.contains("notes"), "{tool}: {text}");
        assert!(text.contains("[2 files or directories left out"), "{tool}: {text}");
        assert_eq!(result.value().unwrap()["forbidden"], 2, "{tool}");
    }
    let read = call(&runtime, "read_file", json!({ "path": ".env" })).await;
    assert!(!read.success() && !read.text().contains("sesame"), "{}", read.text());
    let found = call(&runtime, "grep", json!({ "pattern": "TOKEN", "path": "src" })).await;
    assert!(found.text().contains("main.rs") && !found.text().contains("left out"));
}

#[tokio::test]
async fn a_search_of_the_home_does_not_show_a_denied_key() {
    let place = Place::new();
    let text = format!(
        "tools: {{ allowedPaths: [{}] }}\npolicy: {{ rules: [{{ effect: deny, path: '~/.ssh/**' }}] }}",
        place.home.path().display()
    );
    let runtime = place.runtime(Mode::Default, &text);
    let arguments = json!({ "pattern": "TOKEN", "path": place.home.path() });
    let found = call(&runtime, "grep", arguments).await;
    assert!(found.text().contains(".env") && !found.text().contains(".ssh"), "{}", found.text());
    // Through a link it is the same place.
    std::os::unix::fs::symlink(place.home.path(), place.project().join("up")).unwrap();
    let found = call(&runtime, "grep", json!({ "pattern": "TOKEN", "path": "up" })).await;
    assert!(!found.text().contains(".ssh"), "{}", found.text());
}

#[tokio::test]
async fn a_denied_file_is_hidden_from_confined_programs_where_that_can_be_done() {
    let place = Place::new();
    let text =
        "policy: { rules: [{ effect: deny, path: .env }] }\nsandbox: { backend: bubblewrap }";
    let runtime = place.runtime(Mode::Full, text);
    let Programs::Confined(confinement, _) = runtime.programs() else {
        return skip("bubblewrap", runtime.programs().word());
    };
    assert!(confinement.hidden.contains(&place.project().join(".env")), "{confinement:?}");
    let script = place.project().join("script");
    std::fs::write(&script, "#!/bin/sh\ncat .en* src/main.rs\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    // The policy does not look into scripts, and asks.
    let executor = runtime.executor().authorizer(AllowsAll).build();
    let command = json!({ "command": "./script" });
    let ran = executor.execute(ToolCall::new("c", "run_command", command)).await;
    assert!(
        ran.text().contains("TOKEN is read") && !ran.text().contains("sesame"),
        "{}",
        ran.text()
    );
}

/// Landlock cannot hide a file in a directory that may be written.
#[tokio::test]
async fn a_denied_file_in_the_project_does_not_leave_programs_unconfined() {
    let place = Place::new();
    let sandbox = "sandbox: { backend: landlock }";
    let rule = format!("policy: {{ rules: [{{ effect: deny, path: .env }}] }}\n{sandbox}");
    let (with, without) = (place.runtime(Mode::Full, &rule), place.runtime(Mode::Full, sandbox));
    assert_eq!(with.programs().word(), without.programs().word());
    let asked = call(&with, "run_command", json!({ "command": "grep -r TOKEN ." })).await;
    assert!(!asked.success() && !asked.text().contains("sesame"), "{}", asked.text());
}

/// A tool that only looks, as it says, and yet starts a program.
#[tokio::test]
async fn a_command_tool_of_any_kind_is_asked_about_where_programs_cannot_be_confined() {
    let place = Place::new();
    let hidden = place.project().join("private");
    for kind in ["read", "search", "other", "think", "execute"] {
        let text = format!(
            "policy: {{ kinds: {{ {kind}: allow }} }}\n\
             sandbox: {{ backend: landlock, hidden: ['{}'] }}\n\
             tools: {{ commands: [{{ name: show, description: Shows., kind: {kind}, command: [echo, ran] }}] }}\n",
            hidden.display()
        );
        let runtime = place.runtime(Mode::Default, &text);
        assert!(matches!(runtime.programs(), Programs::Asked(_)), "{:?}", runtime.programs());
        let result = call(&runtime, "show", json!({})).await;
        assert!(!result.success(), "{kind}: {}", result.text());
        assert!(result.text().contains("nobody can be asked"), "{kind}: {}", result.text());
        assert!(call(&runtime, "read_file", json!({ "path": "src/main.rs" })).await.success());
    }
}

/// gemini-cli 4.20: a rule that matches nothing is not taken in silence.
#[test]
fn rules_that_can_never_hold_are_told_where_they_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("user.yml");
    let text = "\
policy:
  kinds: { delete: deny }
  rules:
    - { effect: deny, tool: raed_file }
    - { effect: deny, path: $HOME/.ssh/** }
    - { effect: deny, path: ~root/x }
    - { effect: deny, command: '^rm .*' }
    - { effect: deny, tool: read_file, command: cat * }
    - { effect: allow, kind: delete, path: build/** }
    - { effect: deny, tool: '' }
    - { effect: deny, tool: show }
    - { effect: deny, tool: mcp__server__tool }
    - { effect: allow, tool: run_command, command: ls }
tools: { commands: [{ name: show, description: Shows., command: [echo] }] }
";
    std::fs::write(&file, text).unwrap();
    let mut sources = Sources::new(directory.path());
    sources.user_file = Some(file);
    sources.project_directory = None;
    let embedded = config::load(&sources).unwrap();
    let said = |part: &str| embedded.warnings().iter().any(|told| told.to_string().contains(part));
    assert!(!said("there is no tool"), "a program may add it: {:?}", embedded.warnings());
    assert!(said("does not take a command"), "what is known is judged all the same");
    sources.more_tools = config::MoreTools::None;
    let loaded = config::load(&sources).unwrap();
    let told: Vec<String> = loaded.warnings().iter().map(ToString::to_string).collect();
    for (at, expected) in [
        "4:29: policy.rules[0].tool: the rule never holds: there is no tool `raed_file`; did you mean",
        "5:29: policy.rules[1].path: the rule never holds: variables are not replaced",
        "6:29: policy.rules[2].path: the rule never holds: `~` stands for your own home",
        "7:32: policy.rules[3].command: the rule never holds: `^rm .*` looks like a regular",
        "8:49: policy.rules[4].command: the rule never holds: `read_file` does not take a command",
        "9:30: policy.rules[5].kind: the rule allows nothing: calls of kind `delete` are denied",
        "10:29: policy.rules[6].tool: the rule never holds: an empty pattern",
    ]
    .iter()
    .enumerate()
    {
        let found = told.get(at).map_or("", String::as_str);
        assert!(found.contains(expected), "{expected}\n{told:#?}");
    }
    assert_eq!(told.len(), 7, "{told:#?}");
}
