//! Agents as people come to use them: files that go on changing, inputs given twice, workspaces inside of workspaces.

use std::fs;

use convoke_testkit::{Failure, Reaction, Reply, Wire};
use serde_json::{Value, json};

use crate::run::World;
use crate::support::{Ran, Scene};

fn call(tool: &str, arguments: Value) -> Reaction {
    Reply::default().call(tool, arguments).into()
}

fn done(result: &str) -> Reaction {
    call("complete_task", json!({ "result": result }))
}

fn write(path: &str) -> Reaction {
    call("write_file", json!({ "path": path, "content": "x\n" }))
}

fn delegate(agent: &str) -> Reaction {
    call("delegate_to_agent", json!({ "agent_name": agent, "prompt": "Go." }))
}

fn world(script: Vec<Reaction>, agents: &[(&str, &str)]) -> World {
    let mut world = World::new(script);
    world.scene = world.scene.variable("CONVOKE_TRUST_PROJECT", "1");
    for (name, keys) in agents {
        world.scene = agent_file(world.scene, name, keys);
    }
    world
}

fn agent_file(scene: Scene, name: &str, keys: &str) -> Scene {
    let text = format!("---\nname: {name}\ndescription: Is {name}.\n{keys}---\nYou are {name}.\n");
    scene.file(&format!(".convoke/agents/{name}.md"), text)
}

fn run_agent(world: &World, arguments: &[&str]) -> Ran {
    let usual = ["agents", "run", "--model", "openai-chat/some-model", "--set", "model.retries=0"];
    world.scene.run(&[&usual[..], arguments].concat())
}

fn git(scene: &Scene, arguments: &[&str]) {
    let who = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    let ran = scene.program(&[&["git"], &who[..], arguments].concat()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// The last thing a user said in the request of that number.
fn asked(world: &World, request: usize) -> String {
    let body: Value = serde_json::from_slice(&world.server.requests()[request].body).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|message| message["role"] == "user").unwrap();
    last["content"].to_string()
}

/// An outage takes the caller as well: nothing of what the agent did has to be done again.
#[test]
fn an_agent_whose_model_was_away_goes_on_when_the_run_is_taken_up() {
    let away = || Reaction::failure(Failure::WrongKey);
    let script = vec![
        delegate("worker"),
        write("b.txt"),
        away(),
        away(),
        done("It is written."),
        Reply::text("Done.").into(),
    ];
    let world = world(script, &[("worker", "tools: [write_file]\n")]);
    let ran = world.run(Wire::OpenAiChat, &["--mode", "full", "Go."]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(ran.stderr.contains("`convoke runs resume "), "{ran:?}");
    let ran = world.scene.run(&["runs", "resume", "--last", "--mode", "full"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    let body =
        |index: usize| String::from_utf8(world.server.requests()[index].body.clone()).unwrap();
    assert!(body(4).contains("You are worker."), "the agent is asked first: {}", body(4));
    assert!(body(5).contains("It is written."), "{}", body(5));
    assert!(!body(5).contains("model_unavailable"), "nobody has to hear of it: {}", body(5));
}

/// The worktree of a run that changed nothing in it was once removed with the only place where the changes of its
/// agents could be applied.
#[test]
fn what_agents_changed_is_taken_over_through_the_worktree_of_their_caller() {
    let script = vec![
        delegate("tree"),
        write("b.txt"),
        done("b"),
        delegate("copy"),
        write("c.txt"),
        done("c"),
        Reply::text("Done.").into(),
    ];
    let agents = [
        ("tree", "tools: [write_file]\nworkspace: worktree\n"),
        ("copy", "tools: [write_file]\nworkspace: copy\n"),
    ];
    let world = world(script, &agents);
    let project = world.scene.project();
    git(&world.scene, &["init", "--quiet", "-b", "main"]);
    git(&world.scene, &["add", "-A"]);
    git(&world.scene, &["commit", "--quiet", "-m", "first"]);
    let flags = ["--workspace", "worktree", "--mode", "full", "Go."];
    let ran = world.run(Wire::OpenAiChat, &flags);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let root = world.scene.json(&["runs", "list", "--json"])[0]["run"].as_str().unwrap().to_owned();
    let told = ran.stderr.lines().filter_map(|line| line.split_once("convoke runs apply "));
    let children: Vec<String> = told.map(|(_, id)| id.trim().to_owned()).collect();
    assert_eq!(children.len(), 2, "{ran:?}");
    assert_eq!(world.scene.run(&["runs", "gc", "--keep", "0"]).code, Some(0));
    let workspaces = world.scene.root().join("home/.local/share/convoke/workspaces");
    assert!(workspaces.join(&root).is_dir(), "it is kept for its agents");
    for child in &children {
        let applied = world.scene.run(&["runs", "apply", child]);
        assert_eq!(applied.code, Some(0), "{applied:?}");
        let next = format!("to take it over from there: convoke runs apply {root}");
        assert!(applied.stderr.contains(&next), "{applied:?}");
    }
    assert!(!project.join("b.txt").exists() && !project.join("c.txt").exists());
    let applied = world.scene.run(&["runs", "apply", &root]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(project.join("b.txt").exists() && project.join("c.txt").exists());
    // Who does it again is told that it is done.
    for id in children.iter().chain([&root]) {
        let again = world.scene.run(&["runs", "apply", id]);
        assert_eq!(again.code, Some(0), "{again:?}");
        assert!(again.stderr.contains("already, so there is nothing to do"), "{again:?}");
    }
    fs::write(project.join("b.txt"), "mine\n").unwrap();
    let changed = world.scene.run(&["runs", "apply", &root]);
    assert_eq!(changed.code, Some(1), "{changed:?}");
    assert!(
        changed.stderr.contains("were applied to `[root]/home/project` already"),
        "{changed:?}"
    );
    // An id of an agent is no id of a run.
    for command in ["show", "audit", "resume"] {
        let ran = world.scene.run(&["runs", command, &children[0]]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(&format!("is an agent that run `{root}` called")), "{ran:?}");
    }
    assert_eq!(world.scene.run(&["runs", "rm", &root, "--yes"]).code, Some(0));
    let gone = world.scene.run(&["runs", "apply", &children[0]]);
    assert!(!gone.stderr.contains("needs git"), "{gone:?}");
}

/// An agent's id is the beginning of those of the agents it called, and is its own all the same.
#[test]
fn an_agent_with_a_worktree_that_called_one_with_a_worktree_is_applied_after_it() {
    let script = vec![
        delegate("outer"),
        write("outer.txt"),
        delegate("inner"),
        write("inner.txt"),
        done("inner"),
        done("outer"),
        Reply::text("Done.").into(),
    ];
    let agents = [
        ("outer", "tools: [write_file]\nagents: [inner]\nworkspace: worktree\n"),
        ("inner", "tools: [write_file]\nworkspace: worktree\n"),
    ];
    let world = world(script, &agents);
    git(&world.scene, &["init", "--quiet", "-b", "main"]);
    git(&world.scene, &["add", "-A"]);
    git(&world.scene, &["commit", "--quiet", "-m", "first"]);
    let ran = world.run(Wire::OpenAiChat, &["--mode", "full", "Go."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut ids = workspaces(&world);
    ids.sort_by_key(String::len);
    let [outer, inner] = ids.as_slice() else { panic!("{ids:?}") };
    assert!(inner.starts_with(outer.as_str()), "{ids:?}");
    for id in [inner, outer] {
        assert_eq!(world.scene.run(&["runs", "diff", id]).code, Some(0), "{id}");
        let applied = world.scene.run(&["runs", "apply", id]);
        assert_eq!(applied.code, Some(0), "{applied:?}");
    }
    let project = world.scene.project();
    assert!(project.join("outer.txt").exists() && project.join("inner.txt").exists());
    // Who did what is asked for by a name as well as by a path.
    for pattern in ["inner", "main/outer/inner"] {
        let audit = world.scene.run(&["runs", "audit", "--agent", pattern]);
        assert!(audit.stdout.contains("inner.txt"), "{audit:?}");
        assert!(!audit.stdout.contains("outer.txt"), "{audit:?}");
    }
}

/// The ids of agents of which there is a workspace.
fn workspaces(world: &World) -> Vec<String> {
    let directory = world.scene.root().join("home/.local/share/convoke/workspaces");
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect()
}

#[test]
fn what_agents_of_a_run_that_is_not_kept_leave_can_be_removed() {
    let script = vec![delegate("tree"), write("b.txt"), done("b"), Reply::text("Done.").into()];
    let world = world(script, &[("tree", "tools: [write_file]\nworkspace: copy\n")]);
    let ran = world.run(Wire::OpenAiChat, &["--no-journal", "--mode", "full", "Go."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let [id] = &workspaces(&world)[..] else { panic!("{ran:?}") };
    let kept = world.scene.run(&["runs", "gc"]);
    assert!(kept.stderr.contains(&format!("`convoke runs rm {id}` removes it")), "{kept:?}");
    let asked = world.scene.run(&["runs", "rm", id]);
    assert_eq!(asked.code, Some(2), "{asked:?}");
    assert!(asked.stderr.contains("were not applied: they go with it"), "{asked:?}");
    let (root, _) = id.split_once('-').unwrap();
    let gone = world.scene.run(&["runs", "rm", root, "--yes"]);
    assert_eq!(gone.code, Some(0), "{gone:?}");
    assert!(gone.stdout.contains(&format!("removed the workspace of {id}")), "{gone:?}");
    assert_eq!(workspaces(&world), [""; 0]);
}

#[test]
fn a_prompt_beside_named_inputs_is_handed_over_with_them() {
    let typed = "inputs:\n  target: string\n  depth: {type: integer, required: false}\n";
    let two = "inputs: {one: string, other: string}\n";
    let agents = [("plain", ""), ("typed", typed), ("two", two)];
    let world = world(vec![done("1"), done("2"), done("3")], &agents);
    let ran = run_agent(&world, &["plain", "PROMPT", "--input", "task=TASK"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(asked(&world, 0).contains(r"TASK\n\nPROMPT"), "{}", asked(&world, 0));
    let ran = run_agent(&world, &["typed", "PROMPT", "--input", "target=x", "--input", "depth=2"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(asked(&world, 1).contains("PROMPT"), "{}", asked(&world, 1));
    let ran = run_agent(&world, &["two", "PROMPT", "--inputs", r#"{"one": "a", "other": "b"}"#]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(asked(&world, 2).contains("PROMPT"), "{}", asked(&world, 2));
    // What is wrong with inputs is said with the flag for them, and with their names.
    let ran = run_agent(&world, &["two", "PROMPT"]);
    assert!(ran.stderr.contains("its inputs are one, other"), "{ran:?}");
    let ran = run_agent(&world, &["two"]);
    assert!(ran.stderr.contains("its inputs are one, other"), "{ran:?}");
    let ran = run_agent(&world, &["two", "--inputs", "nojson"]);
    assert!(ran.stderr.contains("or as --input key=value"), "{ran:?}");
    let ran = run_agent(&world, &["two", "--input", "one=1"]);
    assert!(ran.stderr.contains("`convoke agents show two` says what goes in"), "{ran:?}");
    assert_eq!(world.requests(), 3);
}

/// A slip in a key that takes rights away once left an agent with all of them.
#[test]
fn a_slip_in_a_key_that_takes_something_away_makes_a_file_wrong() {
    let typo =
        "modes: plan\nexclude_tool: [run_command]\nrule:\n  - {effect: deny, command: \"rm *\"}\n";
    let world = world(Vec::new(), &[("typo", typo)]);
    let scene = &world.scene;
    let claude = "---\nname: theirs\ndescription: d\ndisallowedTool: Bash\n---\nx\n";
    fs::create_dir_all(scene.project().join(".claude/agents")).unwrap();
    fs::write(scene.project().join(".claude/agents/theirs.md"), claude).unwrap();
    let harmless = "---\nname: fine\ndescription: d\nversion: 2\n---\nx\n";
    fs::write(scene.project().join(".claude/agents/fine.md"), harmless).unwrap();
    let checked = scene.run(&["agents", "check"]);
    assert_eq!(checked.code, Some(7), "{checked:?}");
    for said in [
        "wrong  .convoke/agents/typo.md (typo)",
        "error: .convoke/agents/typo.md:4: key `modes`: this key is not known; did you mean `mode`",
        "error: .convoke/agents/typo.md:5: key `exclude_tool`: this key is not known; did you mean",
        "error: .convoke/agents/typo.md:6: key `rule`: this key is not known; did you mean `rules`",
        "error: .claude/agents/theirs.md:4: key `disallowedTool`: this key is not known",
        "warning: .claude/agents/fine.md:4: key `version`: this key is not known",
    ] {
        assert!(checked.stdout.contains(said), "{said}: {}", checked.stdout);
    }
    for name in ["typo", "theirs"] {
        let ran = run_agent(&world, &[name, "Go."]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("is wrong"), "{ran:?}");
    }
    let both = scene.run(&["agents", "check", "fine", "nosuchthing"]);
    assert_eq!(both.code, Some(2), "{both:?}");
    assert!(
        both.stdout.contains("ok  .claude/agents/fine.md"),
        "what is there is checked: {both:?}"
    );
    assert!(both.stderr.contains("nosuchthing"), "{both:?}");
}

/// What the definition of an agent gave when its run began, a changed file does not add to.
/// zed#62143: its list of tools is kept when it is resumed.
#[test]
fn a_run_of_an_agent_keeps_to_the_rights_it_began_with() {
    let run = |command: &str| call("run_command", json!({ "command": command }));
    let script = vec![
        done("First."),
        write("pwn.txt"),
        run("touch pwn"),
        done("Second."),
        write("pwn.txt"),
        done("Third."),
    ];
    let strict = "mode: plan\ntools: [read_file, write_file]\n";
    let world = world(script, &[("strict", strict)]);
    let ran = run_agent(&world, &["strict", "--mode", "full", "Go."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed = world.scene.stdout(&["runs", "list"]);
    assert!(listed.contains("@strict Go."), "{listed}");
    assert_eq!(world.scene.json(&["runs", "list", "--json"])[0]["agent"], "strict");
    let shown = world.scene.stdout(&["runs", "show", "--last"]);
    assert!(shown.contains("strict (mode plan)"), "{shown}");
    let resume = ["runs", "resume", "--last", "--mode", "full", "--set", "model.retries=0"];
    let resume = |message: &str| world.scene.run(&[&resume[..], &[message]].concat());
    let file = world.scene.project().join(".convoke/agents/strict.md");
    let before = fs::read_to_string(&file).unwrap();
    fs::write(&file, before.replace(strict, "mode: full\n")).unwrap();
    let ran = resume("More.");
    assert!(ran.stderr.contains("it may do what both allow"), "{ran:?}");
    assert!(!world.scene.project().join("pwn.txt").exists(), "{ran:?}");
    assert!(!world.scene.project().join("pwn").exists(), "{ran:?}");
    let body = String::from_utf8(world.server.requests()[1].body.clone()).unwrap();
    assert!(!body.contains("\"run_command\""), "it never had that tool: {body}");
    // The other way round, what the file takes away is gone.
    fs::write(&file, before).unwrap();
    let ran = resume("More.");
    assert!(!ran.stderr.contains("it may do what both allow"), "{ran:?}");
    assert!(!world.scene.project().join("pwn.txt").exists(), "{ran:?}");
    let audit = world.scene.stdout(&["runs", "audit", "--last"]);
    let rights: Vec<&str> = audit.lines().filter(|line| line.contains("agent strict:")).collect();
    assert_eq!(rights.len(), 3, "one for the start and each time it was resumed: {audit}");
    assert!(rights[2].contains("resumed") && rights[2].contains("its mode plan"), "{audit}");
}

/// Lines on agents that a run called say what these may do.
#[test]
fn the_audit_tells_the_rights_of_agents_and_of_every_resume() {
    let script = vec![
        delegate("worker"),
        done("Did it."),
        delegate("worker"),
        done("Did it."),
        Reply::text("Done.").into(),
        Reply::text("Done again.").into(),
    ];
    let world = world(script, &[("worker", "tools: [read_file]\nmode: plan\n")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["Go."]).code, Some(0));
    let resumed = world.scene.run(&["runs", "resume", "--last", "More."]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let audit = world.scene.stdout(&["runs", "audit", "--last"]);
    let resumed = audit.lines().find(|line| line.contains("resumed")).unwrap();
    assert!(resumed.contains("mode default"), "{audit}");
    let worker = audit.lines().find(|line| line.contains("main/worker")).unwrap();
    assert!(worker.contains("its mode plan; tools read_file"), "{audit}");
    let shown = world.scene.stdout(&["runs", "show", "--last", "--tree"]);
    assert!(shown.contains("agent worker 2"), "{shown}");
}

/// Each run once began with every warning there is about every file.
#[test]
fn a_run_says_in_a_line_that_there_are_warnings_about_agents() {
    let agents =
        [("wrong", "mode: yolo\n"), ("bad", "tools: 7\n"), ("dear", "model: nosuch/thing\n")];
    let mut world = world(vec![Reply::text("Hello.").into()], &agents);
    let primary = "---\ndescription: d\nmode: primary\n---\nx\n";
    world.scene = world.scene.file(".opencode/agent/first.md", primary);
    let ran = world.run(Wire::OpenAiChat, &["--set", "agents.allow=[\"nosuch\",\"*\"]", "Go."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let is_told = |line: &&str| line.starts_with("warning") && line.contains("agent");
    let warnings: Vec<&str> = ran.stderr.lines().filter(is_told).collect();
    assert_eq!(warnings.len(), 3, "{ran:?}");
    for said in [
        "2 warnings about agents; `convoke agents check` says which",
        "agents.allow: there is no agent `nosuch`",
        "`dear` is not offered to the main agent",
    ] {
        assert!(warnings.iter().any(|line| line.contains(said)), "{said}: {ran:?}");
    }
    assert!(!ran.stderr.contains("primary"), "what is so on purpose is no warning: {ran:?}");
    let request = String::from_utf8(world.server.requests()[0].body.clone()).unwrap();
    assert!(!request.contains("\"dear\""), "nobody could ask it: {request}");
    let listed = world.scene.stdout(&["agents", "list"]);
    assert!(listed.contains("project (no model)"), "{listed}");
}

#[test]
fn what_holds_for_the_agents_of_an_agent_is_shown() {
    let boss = "agents: [boss, helper, nobody]\nworkspace: copy\nbackground: true\n";
    let plan = "mode: plan\ntools: [read_file, run_command]\ncommands: [\"git diff *\"]\n";
    let without = "mode: default\ntools: [read_file]\ncommands: [\"git diff *\"]\n";
    let agents = [("boss", boss), ("helper", ""), ("planner", plan), ("without", without)];
    let world = world(Vec::new(), &agents);
    let shown = world.scene.run(&["agents", "show", "boss"]).stdout;
    for said in ["helper", "boss (itself), nobody (there is none)", "copy", "its caller goes on"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let flat = world.scene.run(&["agents", "show", "boss", "--set", "agents.maxDepth=1"]).stdout;
    assert!(flat.contains("helper (agents.maxDepth is 1)"), "{flat}");
    let checked = world.scene.run(&["agents", "check", "planner", "without"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    for said in ["in mode `plan` no program does", "none of its tools runs commands"] {
        assert!(checked.stdout.contains(said), "{said}: {}", checked.stdout);
    }
}
