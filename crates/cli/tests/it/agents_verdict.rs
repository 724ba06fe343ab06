//! One verdict on an agent: checking, listing, showing, running and the policy say the same about it.

use std::fs;

use convoke_testkit::{Reaction, Reply, Wire};
use serde_json::{Value, json};

use crate::run::World;
use crate::support::Scene;

/// A file of an agent with these keys.
fn file(name: &str, keys: &str) -> String {
    format!("---\nname: {name}\ndescription: Is {name}.\n{keys}---\nWork.\n")
}

/// A trusted project.
fn scene() -> Scene {
    Scene::new().variable("CONVOKE_TRUST_PROJECT", "1")
}

/// An agent that named itself was once called wrong, and was used all the same.
#[test]
fn an_agent_that_names_itself_is_right_and_the_name_left_out() {
    let scene = scene().file(".convoke/agents/a.md", file("a", "agents: [a, main]\n"));
    let checked = scene.run(&["agents", "check", "a"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    for said in [
        "ok  .convoke/agents/a.md (a)\n",
        "warning: .convoke/agents/a.md:4: key `agents`: `a` is left out: an agent cannot call itself\n",
        "key `agents`: `main` is left out: it is the first agent of every run, and nobody can call it\n",
    ] {
        assert!(checked.stdout.contains(said), "{said}: {}", checked.stdout);
    }
}

/// An agent that could not be started was once listed like any other.
#[test]
fn what_is_wrong_by_the_check_is_wrong_in_the_list() {
    let scene = scene()
        .file(".convoke/agents/bad.md", file("bad", "tools: [read_file, github/list]\n"))
        .file(".convoke/agents/good.md", file("good", ""));
    let said = ".convoke/agents/bad.md:4: key `tools`: there is no tool `github/list` here";
    let checked = scene.run(&["agents", "check", "bad"]);
    assert_eq!(checked.code, Some(7), "{checked:?}");
    assert!(checked.stdout.contains(&format!("error: {said}\n")), "{}", checked.stdout);
    let listed = scene.run(&["agents", "list"]);
    assert!(listed.stdout.contains("project (wrong)"), "{}", listed.stdout);
    assert_eq!(listed.stdout.matches("(wrong)").count(), 1, "{}", listed.stdout);
    assert!(listed.stderr.contains(&format!("warning: {said}\n")), "{}", listed.stderr);
    let rows = scene.json(&["agents", "list", "--json"]);
    let row = |name: &str| rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
    assert_eq!((&row("bad")["ok"], &row("good")["ok"]), (&json!(false), &json!(true)));
    assert_eq!(row("bad")["problems"][0]["line"], 4);
}

#[test]
fn tools_of_servers_that_there_are_not_are_left_out_of_every_kind_of_file() {
    let scene = scene()
        .file(
            ".convoke/agents/ours.md",
            file("ours", "tools: [ls, mcp__github__list, 'mcp__github__*']\n"),
        )
        .file(".convoke/agents/broken.md", file("broken", "tools: [mcp__github__list]\nmode: wild\n"))
        .file(".claude/agents/claude.md", file("claude", "tools: Read, mcp__github__list\n"))
        .file(".gemini/agents/gemini.md", file("gemini", "tools: [read_file, mcp_github_list]\n"))
        .file(".opencode/agent/opens.md", "---\ndescription: Is it.\ntools: {'github_*': true}\n---\nX.\n")
        .file(
            ".opencode/agent/closed.md",
            "---\ndescription: Is it.\ntools: {'*': false, read: true, github_list: true}\n---\nX.\n",
        );
    let checked = scene.run(&["agents", "check"]);
    for said in [
        "ours.md:4: key `tools`: `mcp__github__list` is left out: ",
        "ours.md:4: key `tools`: `mcp__github__*` is left out: ",
        "broken.md:4: key `tools`: `mcp__github__list` is left out: ",
        "claude.md:4: key `tools`: `mcp__github__list` is left out: ",
        "gemini.md:4: key `tools`: `mcp_github_list` is left out: ",
        "opens.md:3: key `tools`: `github_*` is left out: ",
        "closed.md:3: key `tools`: `github_list` is left out: ",
    ] {
        let said = format!("{said}no server named `github` is configured\n");
        assert!(checked.stdout.contains(&said), "{said}: {}", checked.stdout);
    }
    assert_eq!(checked.stdout.matches("error: ").count(), 1, "{}", checked.stdout);
    assert!(checked.stdout.ends_with("6 agents, 1 wrong\n"), "{}", checked.stdout);
    let one = scene.run(&["agents", "check", ".convoke/agents/broken.md"]);
    assert!(!one.stdout.contains("there is no tool"), "{}", one.stdout);
}

/// Servers of `.mcp.json` were once not known to agents, and names with one underscore never found.
#[test]
fn tools_of_servers_that_there_are_have_the_names_they_have_here() {
    let servers = json!({ "mcpServers": { "my_db": { "command": "true" } } });
    let scene = scene()
        .file(".mcp.json", servers.to_string())
        .file(".convoke/agents/a.md", file("a", "tools: [ls, mcp__my_db__query, mcp__my_db]\n"))
        .file(".gemini/agents/b.md", file("b", "tools: [read_file, mcp_my_db_query]\n"))
        .file(
            ".opencode/agent/c.md",
            "---\ndescription: Is c.\ntools: {'my_db_*': true}\n---\nX.\n",
        );
    let checked = scene.run(&["agents", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(!checked.stdout.contains("left out"), "{}", checked.stdout);
    let shown = scene.json(&["agents", "show", "b", "--json"]);
    assert_eq!(shown["definition"]["tools"], "read_file, mcp__my_db__query");
}

fn decided(scene: &Scene, agent: &str, call: &[&str]) -> Value {
    let ran = scene.run(&[&["policy", "check", "--json", "--agent", agent], call].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

#[test]
fn on_a_path_everybody_has_to_be_one_that_the_one_before_may_call() {
    let scene = scene()
        .file(
            ".convoke/agents/worker.md",
            file("worker", "tools: [read_file, ls]\nagents: [looker, shy, grepper]\n"),
        )
        .file(".convoke/agents/looker.md", file("looker", ""))
        .file(".convoke/agents/grepper.md", file("grepper", "tools: [grep]\n"))
        .file(".convoke/agents/shy.md", file("shy", ""))
        .file(".convoke/agents/reviewer.md", file("reviewer", ""))
        .user("agents: {exclude: [shy]}\npolicy: {kinds: {edit: allow}}");
    let write = r#"{"path": "a", "content": "b"}"#;
    let read = ["read_file", r#"{"path": "a"}"#];
    for command in [&["policy", "check"][..], &["policy", "show"]] {
        let call = if command[1] == "check" { &["--", "ls"][..] } else { &[] };
        let path = &["--agent", "main/worker/reviewer"][..];
        let ran = scene.run(&[command, path, call].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let said =
            "`main/worker` cannot call the agent `reviewer`: `agents` of `worker` does not name it";
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    assert_eq!(decided(&scene, "main/worker/looker", &read)["decision"], "allow");
    let absent = decided(&scene, "main/worker/looker", &["write_file", write]);
    assert_eq!(absent["reason"], "`main/worker/looker` does not have the tool `write_file`");
    let above = decided(&scene, "main/worker/grepper", &["grep", r#"{"pattern": "x"}"#]);
    assert_eq!(
        (&above["decision"], &above["reason"]),
        (
            &json!("deny"),
            &json!(
                "`main/worker` does not have the tool `grep`, without which `grepper` cannot be started"
            )
        )
    );
    let off = decided(&scene, "main/worker/shy", &read);
    assert_eq!(
        off["notes"],
        json!(["the agent `shy` is switched off: `agents.exclude` has `shy`"])
    );
    let text = scene.run(&["policy", "check", "--agent", "shy", read[0], read[1]]);
    assert!(text.stdout.contains("  but the agent `shy` is switched off: "), "{}", text.stdout);
}

#[test]
fn agents_are_tools_that_can_be_asked_about() {
    let scene = scene()
        .file(".convoke/agents/worker.md", file("worker", "agents: [helper]\n"))
        .file(".convoke/agents/helper.md", file("helper", ""))
        .user("policy: {kinds: {agent: ask}}");
    let delegate = |name: &str| json!({ "agent_name": name, "prompt": "x" }).to_string();
    let asked = decided(&scene, "main", &["delegate_to_agent", &delegate("helper")]);
    assert_eq!((&asked["decision"], &asked["rule"]), (&json!("ask"), &json!("kind agent")));
    let own = decided(&scene, "main", &["helper", r#"{"task": "x"}"#]);
    assert_eq!((&own["decision"], &own["rule"]), (&json!("ask"), &json!("kind agent")));
    let below = decided(&scene, "worker", &["helper", r#"{"task": "x"}"#]);
    assert_eq!(below["decision"], "ask");
    let not = decided(&scene, "helper", &["worker", r#"{"task": "x"}"#]);
    assert_eq!(not["reason"], "`main/helper` cannot call the agent `worker`");
    let nobody = scene.run(&["policy", "check", "delegate_to_agent", &delegate("nobody")]);
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
    assert!(nobody.stderr.contains("there is no agent `nobody`"), "{}", nobody.stderr);
}

/// The rule of an agent was once called the user's, or not named at all.
#[test]
fn a_rule_has_one_name_wherever_it_is_named() {
    let rules = "rules:\n  - {effect: deny, path: 'x/**'}\n  - {effect: ask, kind: execute}\n";
    let scene = scene()
        .file(".convoke/agents/a.md", file("a", &format!("workspace: readonly\n{rules}")))
        .user("policy: {rules: [{effect: deny, path: 'y/**'}]}");
    let shown = scene.stdout(&["policy", "show", "--agent", "a"]);
    assert!(shown.contains("agent 1  deny") && shown.contains("agent 2  ask"), "{shown}");
    assert_eq!(shown.matches("`y/**`").count(), 1, "the user's rules are nobody else's: {shown}");
    let denied = decided(&scene, "a", &["read_file", r#"{"path": "x/y"}"#]);
    assert_eq!(denied["rule"], "agent rule 1 (the agent `a`)");
    assert_eq!(denied["place"], "the agent `a`");
    let asked = decided(&scene, "a", &["--", "make"]);
    assert_eq!(
        (&asked["decision"], &asked["rule"]),
        (&json!("ask"), &json!("agent rule 2 (the agent `a`)"))
    );
    let main = decided(&scene, "main", &["--", "make"]);
    assert_eq!(main["rule"], "kind execute");
}

#[test]
fn what_an_agent_may_do_is_told_with_its_own_rules() {
    let rules = "rules:\n  - {effect: deny, kind: edit}\n  - {effect: ask, kind: read}\n  \
                 - {effect: deny, path: 'x/**'}\n  - {effect: ask, command: 'git *'}\n";
    let scene = scene()
        .file(".convoke/agents/a.md", file("a", rules))
        .file(".convoke/agents/b.md", file("b", "commands: []\nworkspace: readonly\n"));
    for command in [&["agents", "show", "a"][..], &["agents", "check", "a"]] {
        let shown = scene.stdout(command);
        for line in ["  deny    edit\n", "  and     2 rules of its own\n"] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        let asked = shown.lines().find(|line| line.starts_with("  ask   ")).unwrap();
        assert!(asked.contains("read") && asked.contains("execute"), "{asked}");
    }
    let kinds = &scene.json(&["agents", "show", "b", "--json"])["effective"]["kinds"];
    assert_eq!((&kinds["execute"], &kinds["edit"]), (&json!("deny"), &json!("deny")));
}

#[test]
fn an_agent_that_is_not_offered_is_told_with_the_key_that_does_it() {
    for (settings, key, said) in [
        ("agents: {allow: [generalist]}", "agents.allow", "`agents.allow` does not name it"),
        ("agents: {delegation: off}", "agents.delegation", "`agents.delegation` is `off`"),
        (
            "tools: {enabled: [ls]}",
            "tools.enabled",
            "`tools.enabled` does not have `delegate_to_agent`",
        ),
        (
            "tools: {exclude: [delegate_to_agent]}",
            "tools.exclude",
            "`tools.exclude` has `delegate_to_agent`",
        ),
    ] {
        let scene = scene().file(".convoke/agents/a.md", file("a", "")).user(settings);
        let shown = scene.stdout(&["agents", "show", "a"]);
        assert!(shown.contains(&format!("  not offered  {said}\n")), "{settings}: {shown}");
        let checked = scene.stdout(&["agents", "check", "a"]);
        let warning = format!("it is not offered to the main agent: {said}\n");
        assert!(checked.contains(&warning), "{settings}: {checked}");
        let json = scene.json(&["agents", "show", "a", "--json"]);
        assert_eq!((&json["offered"], &json["notOfferedBy"]), (&json!(false), &json!(key)));
        assert!(scene.stdout(&["agents", "list"]).contains("project (not offered)"), "{settings}");
    }
}

#[test]
fn a_file_that_is_not_for_here_is_left_out_and_not_right() {
    let scene = scene()
        .file(".opencode/agent/first.md", "---\ndescription: Is it.\nmode: primary\n---\nX.\n");
    let checked = scene.stdout(&["agents", "check"]);
    assert!(checked.starts_with("left out  .opencode/agent/first.md\n"), "{checked}");
    assert!(checked.ends_with("1 agent, 0 wrong, 1 left out\n"), "{checked}");
    assert_eq!(scene.json(&["agents", "check", "--json"])[0]["leftOut"], true);
}

#[test]
fn whoever_asks_for_a_file_that_is_wrong_is_sent_to_the_check() {
    let scene = scene()
        .file(".convoke/agents/bad.md", file("inside", "max_turns: many\n"))
        .file(".convoke/agents/good.md", file("good", ""))
        .file(".convoke/agents/twice.md", file("good", ""));
    for name in ["bad", "inside"] {
        for command in [
            &["agents", "show", name][..],
            &["agents", "run", name, "x"],
            &["policy", "show", "--agent", name],
            &["policy", "check", "--agent", name, "--", "ls"],
        ] {
            let ran = scene.run(command);
            assert_eq!(ran.code, Some(2), "{ran:?}");
            let said = format!("hint: `convoke agents check {name}` says what is wrong with it\n");
            assert!(ran.stderr.contains(&said), "{}", ran.stderr);
        }
    }
    let shown = scene.run(&["agents", "show", "good"]);
    assert!(shown.stderr.contains("twice.md: the agent `good` is not used"), "{}", shown.stderr);
    assert!(!shown.stderr.contains("max_turns"), "{}", shown.stderr);
    let count = "warning: 1 warning about other agents; `convoke agents check` says which\n";
    assert!(shown.stderr.contains(count), "{}", shown.stderr);
    assert_eq!(scene.run(&["agents", "show", "good", "-q"]).stderr, "");
}

#[test]
fn names_that_are_far_off_are_not_guessed_and_one_that_is_off_says_so() {
    let scene = scene();
    for short in ["ge", "o", "g"] {
        let ran = scene.run(&["agents", "show", short]);
        assert!(!ran.stderr.contains("did you mean"), "{}", ran.stderr);
    }
    let off = scene.run(&["agents", "show", "test_generater"]);
    let said = "did you mean `test_generator`? It is switched off";
    assert!(off.stderr.contains(said), "{}", off.stderr);
}

#[test]
fn a_new_agent_says_what_becomes_of_it_where_it_is() {
    let scene = scene();
    let replaced = scene.run(&["agents", "new", "generalist"]);
    let said = "it takes the place of the `generalist` that comes with Convoke";
    assert!(replaced.stderr.contains(said), "{}", replaced.stderr);
    let elsewhere = scene.run(&["agents", "new", "helper", "--dir", "team"]);
    assert_eq!(elsewhere.code, Some(0), "{elsewhere:?}");
    for said in [
        "`convoke agents check team/helper.md` says what comes of it",
        "nobody can call it there: agents are not looked for in that directory",
        "`agents.directories` names directories of agents beside the usual ones",
    ] {
        assert!(elsewhere.stderr.contains(said), "{}", elsewhere.stderr);
    }
    let listed = scene.run(&[
        "agents",
        "new",
        "other",
        "--dir",
        "team",
        "--set",
        "agents.directories=[\"team\"]",
    ]);
    assert!(!listed.stderr.contains("nobody can call"), "{}", listed.stderr);
    let usual = scene.run(&["agents", "new", "third", "--dir", ".convoke/agents"]);
    assert!(!usual.stderr.contains("nobody can call"), "{}", usual.stderr);
}

#[test]
fn a_directory_stands_for_the_agents_in_it() {
    let scene = scene()
        .file("convoke.yml", "tools: {timeout: 1000}\n")
        .file("CHANGELOG.md", "# Changes\n")
        .file("compose.yml", "name: app\nservices: {}\n")
        .file("loose.md", file("loose", "max_turns: many\n"))
        .file(".convoke/agents/a.md", file("a", ""))
        .file(".claude/agents/b.md", file("b", ""));
    let all = scene.run(&["agents", "check", "."]);
    assert_eq!(all.code, Some(7), "{all:?}");
    for said in [
        ".convoke/agents: 1 file, read as convoke\n",
        ".claude/agents: 1 file, read as claude\n",
        ".: 1 file, read as convoke; 3 other files are no agents\n",
        "3 agents, 1 wrong\n",
    ] {
        assert!(all.stdout.contains(said), "{said}: {}", all.stdout);
    }
    let of_tool = scene.stdout(&["agents", "check", ".convoke"]);
    assert!(of_tool.starts_with(".convoke/agents: 1 file, read as convoke\n"), "{of_tool}");
    fs::remove_file(scene.project().join(".claude/agents/b.md")).unwrap();
    let empty = scene.run(&["agents", "check", ".claude"]);
    assert_eq!(empty.code, Some(2), "{empty:?}");
    assert!(empty.stderr.contains("its agents would be in "), "{}", empty.stderr);
    assert!(
        scene.stdout(&["agents", "check", "--help"]).contains("  0 all are right, 2 there is no")
    );
}

#[test]
fn without_a_file_agents_alone_can_be_trusted() {
    let scene = Scene::new().file(".convoke/agents/a.md", file("a", ""));
    let how = "`convoke config trust`";
    for command in [
        &["agents", "list"][..],
        &["agents", "show", "a"],
        &["agents", "run", "a", "x"],
        &["agents", "new", "b"],
    ] {
        let ran = scene.run(command);
        assert_eq!(ran.stderr.matches(how).count(), 1, "{command:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("config trust").count(), 1, "{command:?}: {}", ran.stderr);
    }
    let trusted = scene.run(&["config", "trust", "--yes"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert_eq!(scene.run(&["agents", "show", "a"]).code, Some(0));
    // What starts something in a file that comes later is not trusted with it.
    let hooks = "hooks: [{on: [end], command: [touch, ran]}]\n";
    let scene = scene.file("convoke.yml", hooks);
    let listed = scene.run(&["agents", "list"]);
    assert!(listed.stderr.contains("hooks `touch` of convoke.yml"), "{}", listed.stderr);
    assert!(listed.stderr.contains("`convoke config trust` shows it"), "{}", listed.stderr);
    let alone = scene.run(&["trust"]);
    assert_eq!(alone.code, Some(2), "{alone:?}");
    assert!(alone.stderr.contains("did you mean `convoke config trust`?"), "{}", alone.stderr);
}

fn write() -> Reaction {
    Reply::default().call("write_file", json!({ "path": "b.txt", "content": "x" })).into()
}

/// Another mode was once recommended where no mode would have helped.
#[test]
fn a_mode_is_offered_only_where_one_would_have_helped() {
    let said = "`--mode auto_edit` permits changes to files";
    for (settings, mode, helps) in [
        ("{}", "default", true),
        ("{}", "plan", true),
        ("policy: {rules: [{effect: deny, tool: write_file}]}", "default", false),
        ("policy: {rules: [{effect: ask, tool: write_file}]}", "default", false),
        ("policy: {kinds: {edit: deny}}", "default", false),
    ] {
        let mut world = World::new(vec![write(), Reply::text("I could not.").into()]);
        world.scene = world.scene.user(settings);
        let ran = world.run(Wire::OpenAiChat, &["--mode", mode, "Write."]);
        assert_eq!(ran.code, Some(3), "{settings}: {ran:?}");
        assert_eq!(ran.stderr.contains(said), helps, "{settings} {mode}: {}", ran.stderr);
    }
    for keys in ["mode: plan\n", "rules: [{effect: deny, kind: edit}]\n"] {
        let done = Reply::default().call("complete_task", json!({ "result": "No." }));
        let mut world = World::new(vec![write(), done.into()]);
        world.scene = world
            .scene
            .file(".convoke/agents/a.md", file("a", keys))
            .variable("CONVOKE_TRUST_PROJECT", "1");
        let usual =
            ["agents", "run", "--model", "openai-chat/some-model", "--set", "model.retries=0"];
        let ran = world.scene.run(&[&usual[..], &["a", "Write."]].concat());
        assert_eq!(ran.code, Some(3), "{keys}: {ran:?}");
        assert!(!ran.stderr.contains("--mode"), "{keys}: {}", ran.stderr);
    }
}

#[test]
fn a_tool_that_the_main_agent_is_not_offered_is_said() {
    let scene = scene()
        .file(".convoke/agents/a.md", file("a", "tools: [http_get]\n"))
        .user("policy: {kinds: {fetch: allow}}");
    let call = ["http_get", r#"{"url": "https://example.com"}"#];
    let main = decided(&scene, "main", &call);
    let note =
        "the main agent is not offered `http_get`, and its runs do not find it: it is not one of";
    assert!(main["notes"][0].as_str().unwrap().starts_with(note), "{main}");
    let below = decided(&scene, "a", &call);
    assert_eq!((&below["decision"], &below["notes"]), (&json!("allow"), &json!([])), "{below}");
    assert_eq!(decided(&scene, "main", &["ls"])["notes"], json!([]));
    let help = scene.stdout(&["agents", "run", "--help"]);
    assert!(help.contains("also ones that the main agent is not offered"), "{help}");
}
