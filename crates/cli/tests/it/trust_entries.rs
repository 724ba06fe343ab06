//! Entries of a trusted project: each counts as it was shown, and not as it is made later.

use convoke_testkit::Reply;
use serde_json::{Value, json};

use crate::run::World;
use crate::support::Scene;

const MODEL: &str = "openai-chat/some-model";

/// A project whose entries leave a file when they run.
fn project(scene: Scene) -> Scene {
    scene
        .file("convoke.yml", COMMANDS)
        .file(".mcp.json", server("touch ran-server"))
        .file(".convoke/agents/a.md", agent("read_file"))
        .file("srv.sh", "touch ran-script\n")
}

const COMMANDS: &str = "\
tools:
  timeout: 5000
  commands:
    - {name: one, description: Touches., command: [sh, -c, 'touch ran-one'], kind: read}
    - {name: two, description: Runs., command: [sh, ./srv.sh], kind: read}
policy:
  kinds: {fetch: deny}
";

fn server(script: &str) -> String {
    json!({ "mcpServers": { "docs": { "command": "sh", "args": ["-c", script] } } }).to_string()
}

fn agent(tools: &str) -> String {
    format!("---\nname: a\ndescription: Is a.\ntools: [{tools}]\n---\nYou are a.\n")
}

fn trust(scene: &Scene) {
    let trusted = scene.run(&["config", "trust", "--yes"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
}

/// Starts the server: it ends at once, so this fails, but the server has run.
fn start_server(scene: &Scene) -> String {
    scene.run(&["mcp", "test", "docs"]).stderr
}

fn call(scene: &Scene, tool: &str) -> Option<i32> {
    scene.run(&["tools", "call", tool, "--allow", "execute"]).code
}

fn there(scene: &Scene, name: &str) -> bool {
    scene.project().join(name).exists()
}

#[test]
fn changed_server_of_mcp_json_is_not_started() {
    let scene = project(Scene::new());
    trust(&scene);
    start_server(&scene);
    assert!(there(&scene, "ran-server"), "it runs as it was trusted");
    for changed in [
        server("touch changed"),
        json!({ "mcpServers": { "docs": { "command": "python3", "args": ["srv.py"] } } })
            .to_string(),
        json!({ "mcpServers": { "docs": {
            "command": "sh", "args": ["-c", "touch ran-server"], "env": { "BASH_ENV": "./x" },
        } } })
        .to_string(),
    ] {
        std::fs::remove_file(scene.project().join("ran-server")).unwrap_or_default();
        std::fs::write(scene.project().join("srv.py"), "open('changed', 'w')").unwrap();
        std::fs::write(scene.project().join(".mcp.json"), &changed).unwrap();
        let said = start_server(&scene);
        assert!(!there(&scene, "changed") && !there(&scene, "ran-server"), "{changed}: {said}");
        assert!(said.contains("MCP server `docs` of .mcp.json"), "{said}");
    }
    let scene = scene.file(".mcp.json", server("touch changed"));
    trust(&scene);
    start_server(&scene);
    assert!(there(&scene, "changed"), "it runs once it was shown");
}

#[test]
fn new_server_and_changed_back_server_are_judged_by_what_was_shown_last() {
    let scene = project(Scene::new());
    trust(&scene);
    let added = json!({ "mcpServers": {
        "docs": { "command": "sh", "args": ["-c", "touch ran-server"] },
        "more": { "command": "sh", "args": ["-c", "touch changed"] },
    } });
    let scene = scene.file(".mcp.json", added.to_string());
    scene.run(&["mcp", "test", "more"]);
    start_server(&scene);
    assert!(!there(&scene, "changed"), "a new one is left out");
    assert!(there(&scene, "ran-server"), "the other one still counts");
    let scene = scene.file(".mcp.json", server("touch other"));
    trust(&scene);
    std::fs::remove_file(scene.project().join("ran-server")).unwrap();
    let scene = scene.file(".mcp.json", server("touch ran-server"));
    start_server(&scene);
    assert!(!there(&scene, "ran-server"), "the state before is not trusted any more");
}

#[test]
fn changed_command_tool_is_left_out_and_the_rest_of_its_file_holds() {
    let scene = project(Scene::new());
    trust(&scene);
    assert_eq!((call(&scene, "one"), call(&scene, "two")), (Some(0), Some(0)));
    assert!(there(&scene, "ran-one") && there(&scene, "ran-script"));
    let scene = scene.file("convoke.yml", COMMANDS.replace("touch ran-one", "touch changed"));
    let ran = scene.run(&["tools", "call", "one", "--allow", "execute"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("tools.commands `one` of convoke.yml"), "{ran:?}");
    assert!(!there(&scene, "changed"));
    assert_eq!(call(&scene, "two"), Some(0), "the other tool still counts");
    let shown = scene.stdout(&["config", "show"]);
    assert!(shown.contains("policy.kinds.fetch") && shown.contains("tools.timeout"), "{shown}");
}

#[test]
fn changed_script_of_a_command_is_not_run() {
    let scene = project(Scene::new());
    trust(&scene);
    let scene = scene.file("srv.sh", "touch changed\n");
    assert_eq!(call(&scene, "two"), Some(2));
    assert!(!there(&scene, "changed"));
    assert_eq!(call(&scene, "one"), Some(0), "the other tool still counts");
    trust(&scene);
    assert_eq!(call(&scene, "two"), Some(0));
    assert!(there(&scene, "changed"));
}

#[test]
fn changed_hook_does_not_run() {
    let hook = |script: &str| {
        format!("hooks:\n  - {{on: [before_tool], command: [sh, -c, '{script}'], guard: true}}\n")
    };
    let scene = Scene::new().file("a.txt", "one\n").file("convoke.yml", hook("touch ran-hook"));
    trust(&scene);
    let read = ["tools", "call", "read_file", "--arg", "path=a.txt"];
    assert_eq!(scene.run(&read).code, Some(0));
    assert!(there(&scene, "ran-hook"), "it runs as it was trusted");
    let scene = scene.file("convoke.yml", hook("touch changed"));
    let ran = scene.run(&read);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!there(&scene, "changed"), "{ran:?}");
    assert!(ran.stderr.contains("hooks `sh` of convoke.yml"), "{ran:?}");
}

#[test]
fn agent_with_other_tools_and_new_agent_are_left_out() {
    let scene = project(Scene::new());
    trust(&scene);
    let agents = |scene: &Scene| {
        let listed = scene.json(&["agents", "list", "--json"]);
        let names = listed.as_array().unwrap().iter().map(|one| one["name"].clone());
        names.filter(|name| name == "a" || name == "b").collect::<Vec<Value>>()
    };
    assert_eq!(agents(&scene), ["a"]);
    let prose = agent("read_file").replace("You are a.", "You are another.");
    let scene = scene.file(".convoke/agents/a.md", prose);
    assert_eq!(agents(&scene), ["a"], "prose is covered by the trust in the project");
    let scene = scene.file(".convoke/agents/a.md", agent("read_file, run_command"));
    let new = agent("read_file").replace("name: a", "name: b");
    let scene = scene.file(".claude/agents/b.md", new);
    assert_eq!(agents(&scene), Vec::<Value>::new());
    let ran = scene.run(&["agents", "list"]);
    assert!(ran.stderr.contains("agent `a` of .convoke/agents/a.md"), "{ran:?}");
    assert!(ran.stderr.contains("agent `b` of .claude/agents/b.md"), "{ran:?}");
    trust(&scene);
    assert_eq!(agents(&scene), ["a", "b"]);
}

#[test]
fn run_tells_of_entries_that_are_left_out_in_one_line_and_in_its_report() {
    let mut world = World::new(vec![Reply::text("Done.").into()]);
    world.scene = project(world.scene);
    trust(&world.scene);
    world.scene = world
        .scene
        .file(".mcp.json", server("touch changed"))
        .file("convoke.yml", COMMANDS.replace("touch ran-one", "touch changed"))
        .file(".convoke/agents/a.md", agent("run_command"));
    let ran = world.scene.run(&["run", "--model", MODEL, "--output", "json", "Go."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("left out")).collect();
    assert_eq!(told.len(), 1, "{ran:?}");
    assert!(told[0].starts_with("warning: 3 entries of this project are left out"), "{told:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let warnings = report["warnings"].as_array().unwrap();
    let is_told = |warning: &Value| told[0].ends_with(warning.as_str().unwrap());
    assert_eq!(warnings.iter().filter(|warning| is_told(warning)).count(), 1, "{report}");
    assert!(!there(&world.scene, "changed"));
}

#[test]
fn trust_shows_only_what_is_new_or_changed_and_marks_it() {
    let scene = project(Scene::new());
    trust(&scene);
    let scene = scene
        .file("convoke.yml", COMMANDS.replace("touch ran-one", "touch changed"))
        .file(".claude/agents/b.md", agent("read_file").replace("name: a", "name: b"));
    let shown = scene.run(&["config", "trust"]).stderr;
    assert!(shown.contains("  changed: tools.commands[0]: "), "{shown}");
    assert!(shown.contains("  new: b (b.md): "), "{shown}");
    assert!(!shown.contains("docs") && !shown.contains("two"), "{shown}");
    assert!(shown.contains("trusted already, shown by --all: 3"), "{shown}");
    let all = scene.run(&["config", "trust", "--all"]).stderr;
    assert!(all.contains("  trusted: docs: sh -c \"touch ran-server\""), "{all}");
    assert!(all.contains("      with srv.sh"), "the script that is covered: {all}");
    let json = scene.json(&["config", "trust", "--json"]);
    let state = |label: &str| {
        let mut entries = json["entries"].as_array().unwrap().iter();
        let entry = entries.find(|entry| entry["label"].as_str().unwrap().starts_with(label));
        let entry = entry.unwrap_or_else(|| panic!("{label}: {json}"));
        assert_eq!(entry["digest"].as_str().unwrap().len(), 64);
        entry["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state("tools.commands `one`"), "changed");
    assert_eq!(state("tools.commands `two`"), "trusted");
    assert_eq!(state("MCP server `docs`"), "trusted");
    assert_eq!(state("agent `b`"), "new");
    assert_eq!(call(&scene, "one"), Some(2), "to look is not to trust");
}

/// A file that lists further servers grants nothing for what these say later.
#[test]
fn server_of_a_listed_file_and_server_of_convoke_yml_are_entries() {
    let listed = "tools:\n  mcpFiles: ['${NOPE:-.vscode}/x.json']\n  mcpServers: [{name: own, command: sh, args: [-c, touch ran-own]}]\n";
    let scene =
        Scene::new().file("convoke.yml", listed).file(".vscode/x.json", server("touch ran-server"));
    trust(&scene);
    start_server(&scene);
    scene.run(&["mcp", "test", "own"]);
    assert!(there(&scene, "ran-server") && there(&scene, "ran-own"));
    let scene = scene
        .file("convoke.yml", listed.replace("ran-own", "changed-own"))
        .file(".vscode/x.json", server("touch changed"));
    start_server(&scene);
    scene.run(&["mcp", "test", "own"]);
    assert!(!there(&scene, "changed") && !there(&scene, "changed-own"));
}

/// A mistake in a file that nobody trusted stops no command.
#[test]
fn mistake_in_an_untrusted_file_is_a_warning_and_the_file_is_left_out() {
    for text in [
        "tools: [",
        "tools: {timeout: soon}\n",
        "nonsense: true\n",
        "policy: {rules: [{effect: maybe}]}\n",
        "tools: {allowedPaths: [./nowhere]}\n",
        "tools:\n  timeout: 1\n  timeout: 2\n",
        "\u{0}",
    ] {
        let scene = Scene::new().file("convoke.yml", text);
        for words in [
            &["tools", "list"][..],
            &["doctor"],
            &["config", "check"],
            &["config", "show"],
            &["runs", "list"],
            &["config", "trust", "--yes"],
        ] {
            if words == ["config", "trust", "--yes"] {
                assert_eq!(scene.run(&["config", "untrust"]).code, Some(0), "{text}");
            }
            let ran = scene.run(words);
            assert!(matches!(ran.code, Some(0 | 1)), "{text:?} {words:?}: {ran:?}");
            assert_ne!((words[0], ran.code), ("tools", Some(1)), "{text:?}: {ran:?}");
        }
        let check = scene.run(&["config", "check"]);
        let _ = scene.run(&["config", "untrust"]);
        let checked = scene.run(&["config", "check"]);
        assert!(checked.stderr.contains("convoke.yml"), "{text:?}: {check:?} {checked:?}");
    }
}
