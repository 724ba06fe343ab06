//! What is said about agents before anybody calls one: files, names, settings, trust.

use std::fs;

use convoke_testkit::{Reply, Wire};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::pty::{Attached, Terminal};
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

/// Writes the user's settings again.
fn set(scene: &Scene, settings: &str) {
    let directory = scene.root().join("home/.config/convoke");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("convoke.yml"), settings).unwrap();
}

/// `policy check` once knew nothing of an agent's own policy, which `policy show` showed.
#[test]
fn what_is_decided_for_an_agent_is_what_is_shown_for_it() {
    let scene = scene()
        .file(".convoke/agents/planner.md", file("planner", "mode: plan\n"))
        .file(
            ".convoke/agents/git.md",
            file(
                "git",
                "tools: [run_command, read_file]\ncommands: ['git log *']\nagents: [looker]\n",
            ),
        )
        .file(
            ".convoke/agents/looker.md",
            file("looker", "workspace: readonly\nrules:\n  - { effect: deny, path: 'x/**' }\n"),
        )
        .user("policy: {kinds: {edit: allow, execute: allow}}");
    let write = r#"{"path": "a", "content": "b"}"#;
    let decided = |agent: &str, call: &[&str]| {
        let ran = scene.run(&[&["policy", "check", "--json", "--agent", agent], call].concat());
        let json: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        assert_eq!(ran.code, Some(if json["decision"] == "allow" { 0 } else { 3 }), "{ran:?}");
        json
    };
    let shown = |agent: &str| scene.json(&["policy", "show", "--json", "--agent", agent]);
    for (agent, permission) in
        [("main", "allow"), ("planner", "deny"), ("main/planner", "deny"), ("looker", "deny")]
    {
        assert_eq!(decided(agent, &["write_file", write])["decision"], permission, "{agent}");
        assert_eq!(shown(agent)["kinds"]["edit"], permission, "{agent}");
    }
    assert_eq!(decided("git", &["--", "git", "log"])["decision"], "allow");
    let push = decided("git", &["--", "git", "push"]);
    assert_eq!(push["reason"], "this agent may run only `git log *`");
    assert_eq!(push["rule"], "the commands of the agent");
    assert_eq!(shown("git")["commands"], json!(["git log *"]));
    let rule = decided("looker", &["read_file", r#"{"path": "x/y"}"#]);
    assert_eq!((&rule["decision"], &rule["place"]), (&json!("deny"), &json!("the agent `looker`")));
    let absent = decided("git", &["write_file", write]);
    assert_eq!(absent["reason"], "`main/git` does not have the tool `write_file`");
    // Below another agent, what that may not, it may not.
    assert_eq!(decided("main/git/looker", &["--", "git", "push"])["decision"], "deny");
    for name in ["plannr", "main/plannr", "plannr/git"] {
        for command in [&["policy", "show"][..], &["policy", "check"]] {
            let call = if command[1] == "check" { &["--", "ls"][..] } else { &[] };
            let ran = scene.run(&[command, &["--agent", name], call].concat());
            assert_eq!(ran.code, Some(2), "{ran:?}");
            assert!(ran.stderr.contains("did you mean `planner`?"), "{}", ran.stderr);
        }
    }
}

#[test]
fn a_file_that_is_wrong_is_found_by_its_name_and_by_the_one_in_it() {
    let scene = scene().file(".convoke/agents/stem.md", file("inside", "max_turns: many\n"));
    for name in ["stem", "inside", ".convoke/agents/stem.md"] {
        let checked = scene.run(&["agents", "check", name]);
        assert_eq!(checked.code, Some(7), "{name}: {checked:?}");
        assert!(checked.stdout.contains("stem.md:4: key `max_turns`"), "{}", checked.stdout);
    }
    let unknown = scene.run(&["agents", "check", "insde"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

#[test]
fn all_files_of_a_directory_are_checked_as_its_tool_writes_them() {
    let scene = Scene::new()
        .file(
            "x/.claude/agents/a.md",
            "---\nname: a\ndescription: Is a.\ntools: Read\n---\nWork.\n",
        )
        .file("x/.claude/agents/team/b.md", file("b", "tools: Reed\n"))
        .file("plain/c.md", file("c", "tools: [read_file]\nagents: [d]\n"))
        .file("plain/d.yml", "name: d\ndescription: Is d.\nsystem_prompt: Work.\n")
        .file("empty/readme.txt", "");
    let checked = scene.run(&["agents", "check", "x/.claude/agents"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(
        checked.stdout.starts_with("x/.claude/agents: 2 files, read as claude\n"),
        "{checked:?}"
    );
    assert!(checked.stdout.contains("`Reed` is not a tool that is known"), "{checked:?}");
    let json = scene.json(&["agents", "check", "plain", "--json"]);
    assert_eq!((&json[0]["format"], &json[0]["ok"]), (&json!("convoke"), &json!(true)), "{json}");
    assert_eq!(json.as_array().unwrap().len(), 2);
    let one = scene.json(&["agents", "check", "x/.claude/agents/team/b.md", "--json"]);
    assert_eq!(one[0]["format"], "claude", "{one}");
    let empty = scene.run(&["agents", "check", "empty"]);
    assert_eq!(empty.code, Some(2), "{empty:?}");
    assert!(empty.stderr.contains("there are no files of agents in `empty`"), "{empty:?}");
}

#[test]
fn what_an_agent_does_not_get_here_is_said_with_its_line() {
    let scene = scene()
        .file(
            ".convoke/agents/wide.md",
            file(
                "wide",
                "max_turns: 80\nmax_time_minutes: 60\ntools: [read_file, grep, helper, web_search]\n\
                 agents: [wide, main, helper, shy, codebase_investigater]\n",
            ),
        )
        .file(".convoke/agents/helper.md", file("helper", ""))
        .file(".convoke/agents/shy.md", file("shy", ""))
        .user("tools: {exclude: [grep]}\nagents: {exclude: [shy]}");
    let checked = scene.run(&["agents", "check", "wide"]);
    assert_eq!(checked.code, Some(7), "{checked:?}");
    assert_snapshot!(checked.stdout, @"
    wrong  .convoke/agents/wide.md (wide)
      error: .convoke/agents/wide.md:6: key `tools`: `helper` is an agent, not a tool; write `agents: [helper]`
      warning: .convoke/agents/wide.md:4: key `max_turns`: 80 → 30 (budget.turns)
      warning: .convoke/agents/wide.md:5: key `max_time_minutes`: 1 h 00 m → 10 m 00 s (budget.time)
      warning: .convoke/agents/wide.md:6: key `tools`: the tool `grep` is excluded by `tools.exclude`
      warning: .convoke/agents/wide.md:7: key `agents`: `wide` is left out: an agent cannot call itself
      warning: .convoke/agents/wide.md:7: key `agents`: `main` is left out: it is the first agent of every run, and nobody can call it
      warning: .convoke/agents/wide.md:7: key `agents`: the agent `shy` is switched off: `agents.exclude` has `shy`
      warning: .convoke/agents/wide.md:7: key `agents`: there is no agent `codebase_investigater`; did you mean `codebase_investigator`?

    1 agent, 1 wrong
    ");
    let shipped = scene.run(&["agents", "check", "codebase_investigator"]);
    assert!(shipped.stdout.contains("key `max_turns`: 50 → 30 (budget.turns)"), "{shipped:?}");
    set(&scene, "tools: {enabled: [read_file]}");
    let narrow = scene.stdout(&["agents", "show", "helper"]);
    assert!(narrow.contains("tools        read_file\n"), "{narrow}");
    let checked = scene.run(&["agents", "check", "wide"]);
    assert!(
        checked.stdout.contains("the tool `grep` is not one of `tools.enabled`"),
        "{checked:?}"
    );
}

#[test]
fn every_mistake_of_a_file_is_said_at_once() {
    let keys = "name: again\nmax_turns: many\ntools: [read_file, 5, reed_file]\nagents: [nobody]\n\
                mode: wild\ncommands: ['a; b', 'git log *', 'c | d']\nquery: ${what}\n";
    let scene = scene().file(".convoke/agents/bad.md", file("bad", keys));
    let checked = scene.run(&["agents", "check"]);
    assert_eq!(checked.code, Some(7), "{checked:?}");
    assert_snapshot!(checked.stdout, @"
    wrong  .convoke/agents/bad.md (bad)
      error: .convoke/agents/bad.md:4: the key `name` appears twice; keep one of them
      error: .convoke/agents/bad.md:5: key `max_turns`: expected a whole number from 1 to 100000, found `many`
      error: .convoke/agents/bad.md:6: key `tools`: expected a name, found `5`
      error: .convoke/agents/bad.md:6: key `tools`: there is no tool `reed_file` here; did you mean `read_file`, `edit_file` or `move_file`?
      error: .convoke/agents/bad.md:8: key `mode`: expected one of `plan`, `default`, `auto_edit`, `full`, found `wild`
      error: .convoke/agents/bad.md:9: key `commands`: `a; b`: a command pattern is one simple command; write one rule for each
      error: .convoke/agents/bad.md:9: key `commands`: `c | d`: a command pattern is one simple command; write one rule for each
      error: .convoke/agents/bad.md:10: key `query`: agent `bad`: nothing is there for `${what}` (query, line 1); its inputs are `task`; a literal `${` is written `$${`
      warning: .convoke/agents/bad.md:7: key `agents`: there is no agent `nobody`

    1 agent, 1 wrong
    ");
}

#[test]
fn a_file_whose_name_is_taken_is_not_called_right() {
    let scene = scene()
        .file(".convoke/agents/one.md", file("same", ""))
        .file(".convoke/agents/two.md", file("same", "max_turns: 5\n"))
        .file("../.config/convoke/agents/three.md", file("same", ""));
    let checked = scene.run(&["agents", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("unused  .convoke/agents/two.md (same)\n"), "{checked:?}");
    let why = "the agent `same` is not used: .convoke/agents/one.md has one of that name";
    assert_eq!(checked.stdout.matches(why).count(), 2, "{}", checked.stdout);
    assert!(checked.stdout.ends_with("3 agents, 0 wrong, 2 unused\n"), "{}", checked.stdout);
    let json = scene.json(&["agents", "check", ".convoke/agents/two.md", "--json"]);
    assert_eq!(json[0]["usedInstead"], ".convoke/agents/one.md");
}

#[test]
fn a_project_that_replaces_an_agent_that_comes_along_is_told() {
    let scene = scene().file(".convoke/agents/generalist.md", file("generalist", ""));
    let said = "the project's agent `generalist` takes the place of the `generalist` that comes";
    let checked = scene.stdout(&["agents", "check"]);
    assert!(
        checked.contains(&format!("warning: .convoke/agents/generalist.md: {said}")),
        "{checked}"
    );
    let listed = scene.run(&["agents", "list"]);
    assert_eq!(listed.stderr.matches(said).count(), 1, "{}", listed.stderr);
    let mut world = World::new(vec![Reply::text("Done.").into()]);
    world.scene = world
        .scene
        .file(".convoke/agents/generalist.md", file("generalist", ""))
        .variable("CONVOKE_TRUST_PROJECT", "1");
    let ran = world.run(Wire::OpenAiChat, &["x"]);
    assert_eq!((ran.code, ran.stderr.matches(said).count()), (Some(0), 1), "{ran:?}");
    // One's own files may replace what one likes.
    let own = Scene::new()
        .file("../.config/convoke/agents/generalist.md", file("generalist", ""))
        .run(&["agents", "list"]);
    assert_eq!(own.stderr, "", "{own:?}");
}

#[test]
fn an_agent_that_is_off_is_shown_and_not_run() {
    let scene = scene()
        .file(".convoke/agents/mine.md", file("mine", ""))
        .file(".convoke/agents/yours.md", file("yours", ""));
    for (settings, name, key, said) in [
        ("agents: {enabled: false}", "mine", "agents.enabled", "`agents.enabled` is `false`"),
        ("agents: {exclude: ['mi*']}", "mine", "agents.exclude", "`agents.exclude` has `mi*`"),
        (
            "agents: {overrides: {mine: {enabled: false}}}",
            "mine",
            "agents.overrides.mine.enabled",
            "`agents.overrides.mine.enabled` is `false`",
        ),
        (
            "{}",
            "test_generator",
            "agents.overrides.test_generator.enabled",
            "is there once `agents.overrides.test_generator.enabled` is `true`",
        ),
    ] {
        set(&scene, settings);
        let shown = scene.run(&["agents", "show", name]);
        assert_eq!(shown.code, Some(0), "{settings}: {shown:?}");
        assert!(shown.stdout.contains(said), "{settings}: {}", shown.stdout);
        let json = scene.json(&["agents", "show", name, "--json"]);
        assert_eq!((&json["enabled"], &json["offBy"]), (&json!(false), &json!(key)));
        let ran = scene.run(&["agents", "run", name, "x"]);
        assert_eq!(ran.code, Some(2), "{settings}: {ran:?}");
        let why = format!("the agent `{name}` is switched off: ");
        assert!(ran.stderr.contains(&why) && ran.stderr.contains(said), "{}", ran.stderr);
        let listed = scene.json(&["agents", "list", "--json"]);
        let listed = listed.as_array().unwrap();
        let row = listed.iter().find(|row| row["name"] == name).unwrap();
        assert_eq!((&row["enabled"], &row["offBy"]), (&json!(false), &json!(key)));
        let checked = scene.stdout(&["agents", "check", name]);
        assert!(checked.contains("it is switched off: "), "{checked}");
    }
}

#[test]
fn in_a_folder_that_is_not_trusted_it_is_said_what_helps() {
    let scene = Scene::new();
    let made = scene.run(&["agents", "new", "helper"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(
        made.stderr.contains("this project is not trusted, so nobody can call it yet"),
        "{made:?}"
    );
    assert!(made.stderr.contains("`convoke config trust`"), "{made:?}");
    let elsewhere = scene.run(&["agents", "new", "other", "--dir", "team"]);
    assert!(!elsewhere.stderr.contains("trusted"), "{elsewhere:?}");
    for command in [&["agents", "show", "helper"][..], &["agents", "run", "helper", "x"]] {
        let ran = scene.run(command);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let said = "the agent `helper` is the project's (.convoke/agents/helper.md), which is not";
        assert!(ran.stderr.contains(said), "{ran:?}");
        assert!(ran.stderr.contains("`convoke config trust`"), "{ran:?}");
    }
    let scene = scene.file("convoke.yml", "");
    let shown = scene.run(&["agents", "show", "helper"]);
    assert!(shown.stderr.contains("then run `convoke config trust`"), "{shown:?}");
    assert_eq!(scene.run(&["config", "trust", "--yes"]).code, Some(0));
    assert_eq!(scene.run(&["agents", "show", "helper"]).code, Some(0));
}

#[test]
fn every_directory_of_agents_is_named_before_it_is_trusted() {
    let agent = |name: &str| file(name, "");
    let scene = Scene::new()
        .file("convoke.yml", "")
        .file(".convoke/agents/a.md", agent("a"))
        .file(".convoke/agents/b.yml", "name: b\ndescription: Is b.\n")
        .file(".claude/agents/c.md", agent("c"))
        .file(".claude/agents/team/d.md", agent("d"))
        .file(".gemini/agents/e.md", agent("e"))
        .file(".opencode/agent/f.md", agent("f"))
        .file(".opencode/agents/g.md", agent("g"))
        .file(".opencode/agents/README.md", "About them.");
    let trusted = scene.run(&["config", "trust", "--yes"]);
    for said in [
        ".convoke/agents can then be called:\n  a (a.md): ",
        ".claude/agents can then be called:\n  c (c.md): ",
        ".claude/agents/team can then be called:\n  d (d.md): ",
        ".gemini/agents can then be called:\n  e (e.md): ",
        ".opencode/agent can then be called:\n  f (f.md): ",
        ".opencode/agents can then be called:\n  g (g.md): ",
    ] {
        assert!(trusted.stderr.contains(said), "{said}: {}", trusted.stderr);
    }
}

#[test]
fn a_key_that_there_is_not_comes_with_those_that_there_are() {
    let ran = Scene::new().run(&["agents", "list", "--set", "agents.overrides.x.foo=1"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    let said = "the keys of `agents.overrides.x` are `agents`, `atMostOnce`";
    assert!(ran.stderr.contains(said) && ran.stderr.contains("`maxTurns`"), "{}", ran.stderr);
    let near = Scene::new().run(&["agents", "list", "--set", "agents.overrides.x.maxTurn=1"]);
    assert!(near.stderr.contains("did you mean `agents.overrides.x.maxTurns`"), "{}", near.stderr);
    let help = Scene::new().stdout(&["agents", "new", "--help"]);
    for key in ["exclude_tools", "max_time_minutes", "reasoning_effort", "at_most_once", "rules"] {
        assert!(help.contains(key), "{key}: {help}");
    }
}

/// A directory that settings name and that is read anyway was read twice, and everything said twice.
#[test]
fn nothing_is_said_twice() {
    let scene = scene()
        .file("convoke.yml", "agents: {directories: [.convoke/agents]}")
        .file(".convoke/agents/bad.md", file("bad", "max_turns: many\n"))
        .file(".convoke/agents/good.md", file("good", ""));
    let listed = scene.run(&["agents", "list"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert_eq!(listed.stderr.matches("warning: ").count(), 1, "{}", listed.stderr);
    assert!(scene.run(&["agents", "check"]).stdout.ends_with("2 agents, 1 wrong\n"));
}

/// Lines that a terminal breaks are not rows any more.
#[test]
fn the_list_fits_a_terminal() {
    let long = "a".repeat(64);
    let scene = scene()
        .file(".convoke/agents/long.md", file(&long, "model: provider/a-model-with-a-long-name\n"))
        .user("agents: {exclude: [generalist], allow: [codebase_investigator]}");
    let list = ["agents", "list", "--color", "never"];
    let shown = Terminal::start(&scene, 80, Attached::All, &list).end().screen;
    assert_eq!(shown.lines().count(), 6, "{shown}");
    for line in shown.lines() {
        assert!(line.trim_end().chars().count() <= 80, "{line}");
    }
    let piped = scene.stdout(&["agents", "list"]);
    assert_eq!(piped.lines().count(), 6, "{piped}");
    assert!(piped.contains(&long), "nothing is cut for programs: {piped}");
}

#[test]
fn tools_of_servers_that_are_not_configured_are_left_out() {
    let server = "tools: {mcpServers: [{name: known, url: 'http://localhost:1', enabled: false}]}";
    let scene = scene()
        .file(
            ".convoke/agents/a.md",
            file("a", "tools: [read_file, mcp__github__search, mcp__known__x, 'mcp__jira__*']\n"),
        )
        .file(".claude/agents/b.md", file("b", "tools: Read, mcp__github\n"))
        .user(server);
    let checked = scene.run(&["agents", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    for said in [
        "a.md:4: key `tools`: `mcp__github__search` is left out: no server named `github` is configured",
        "a.md:4: key `tools`: `mcp__known__x` is left out: the server `known` is switched off",
        "a.md:4: key `tools`: `mcp__jira__*` is left out: no server named `jira` is configured",
        "b.md:4: key `tools`: `mcp__github__*` is left out: no server named `github` is configured",
    ] {
        assert!(checked.stdout.contains(said), "{said}: {}", checked.stdout);
    }
    let shown = scene.json(&["agents", "show", "a", "--json"]);
    assert_eq!(shown["effective"]["tools"], json!(["read_file"]));
    let by_file = scene.run(&["agents", "check", ".convoke/agents/a.md"]);
    assert_eq!(by_file.code, Some(0), "{by_file:?}");
    let overridden = scene.run(&[
        "agents",
        "list",
        "--set",
        "agents.overrides.a.tools=[\"read_file\", \"mcp__x__y\"]",
    ]);
    let said = "`mcp__x__y` is left out of `a`: no server named `x` is configured";
    assert!(overridden.stderr.contains(said), "{}", overridden.stderr);
}

/// `-q` left warnings in some commands and not in others.
#[test]
fn whoever_wants_few_words_gets_results_and_errors() {
    let scene = scene()
        .file(
            ".convoke/agents/wrong.md",
            "---\nname: wrong\nnonsense: 1\ntools: [raed_file]\n---\n",
        )
        .file(".convoke/agents/good.md", file("good", "unknown_key: 1\n"))
        .file(
            ".mcp.json",
            r#"{"mcpServers": {"old": {"type": "sse", "url": "https://x.example/sse"}}}"#,
        );
    for words in [
        &["agents", "list"][..],
        &["agents", "show", "good"],
        &["policy", "show", "--agent", "good"],
        &["policy", "check", "--", "ls"],
        &["tools", "list"],
        &["mcp", "list"],
        &["runs", "list"],
        &["runs", "audit"],
        &["runs", "gc"],
        &["config", "check"],
        &["config", "show"],
        &["models", "list"],
        &["doctor"],
    ] {
        let quiet = scene.run(&[words, &["-q"]].concat());
        assert_eq!(quiet.stderr, "", "{words:?}: {quiet:?}");
        let usual = scene.run(words);
        assert_eq!(usual.code, quiet.code, "{words:?}");
    }
    assert!(scene.run(&["agents", "list"]).stderr.contains("warning: "));
}
