//! `convoke agents`, and agents in runs of the command.

use std::fs;
use std::path::PathBuf;

use convoke_testkit::{Reaction, Reply};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::run::World;
use crate::support::{Ran, Scene};

const REVIEWER: &str = "---
name: reviewer
description: Reviews changes.
tools: [read_file, grep]
mode: plan
max_turns: 5
---
You are the reviewer. Look at ${task}.
";

/// A project with an agent, trusted.
fn scene() -> Scene {
    Scene::new()
        .file(".convoke/agents/reviewer.md", REVIEWER)
        .variable("CONVOKE_TRUST_PROJECT", "1")
}

fn done(result: &str) -> Reaction {
    Reply::default().call("complete_task", json!({ "result": result })).into()
}

#[test]
fn the_help_of_every_command_has_examples() {
    let scene = Scene::new();
    assert_snapshot!(scene.stdout(&["agents"]).split("Global options").next().unwrap(), @"
    List, check, write and run agents

    Usage: convoke agents [OPTIONS] <COMMAND>

    Commands:
      list   List the agents that runs can call
      show   Show everything about an agent
      check  Check files of agents
      new    Write a file for a new agent
      run    Let an agent work by itself
      help   Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    ");
    for command in ["list", "show", "check", "new", "run"] {
        let help = scene.stdout(&["agents", command, "--help"]);
        assert!(help.contains(&format!("convoke agents {command}")), "{help}");
        assert!(help.contains("Examples:\n"), "{help}");
    }
}

#[test]
fn agents_are_listed_with_whose_they_are() {
    let scene = scene()
        .file(
            "../.claude/agents/mine.md",
            "---\nname: mine\ndescription: Is mine.\n---\nBe mine.\n",
        )
        .user("agents: {exclude: [mine], overrides: {generalist: {model: openai/small}}}");
    assert_snapshot!(scene.stdout(&["agents", "list"]), @"
    agent                  source              model         tools    about
    codebase_investigator  shipped             -             4 tools  Investigates a codebase in depth and reports how something works, where it is done and what depends on it, with files and symbols.
    generalist             shipped (no model)  openai/small  7 tools  Takes over any task that can be described in full and brought back finished: changes across many files, long searches, anything with much output that the caller need not see.
    reviewer               project             -             2 tools  Reviews changes.
    document_generator     shipped (off)       -                      Writes or corrects documentation from what the code does: guides, references, READMEs, explanations of a module.
    mine                   user (off)          -                      Is mine.
    test_generator         shipped (off)       -                      Writes tests for existing code in the project's own style, runs them, and reports what they cover and which bugs they found.
    ");
    let listed = scene.json(&["agents", "list", "--json"]);
    let reviewer = &listed[2];
    assert_eq!(reviewer["name"], "reviewer");
    assert_eq!((&reviewer["source"], &reviewer["format"]), (&json!("project"), &json!("convoke")));
    assert_eq!(reviewer["tools"], json!(["grep", "read_file"]));
    assert_eq!((&listed[4]["name"], &listed[4]["offered"]), (&json!("mine"), &json!(false)));
}

#[test]
fn an_agent_is_shown_as_it_is_below_the_main_one() {
    let scene = scene().user(
        "agents: {overrides: {reviewer: {maxTurns: 3}}}\npolicy: {kinds: {fetch: deny}}\n\
         budget: {time: 2m}",
    );
    assert_snapshot!(scene.stdout(&["agents", "show", "reviewer"]), @"
    name: reviewer
    description: Reviews changes.
    max_turns: 3
    tools: read_file, grep
    mode: plan
    inputs: task (string): What the agent is to do, in full.
    system_prompt: You are the reviewer. Look at ${task}.

    below the main agent
      source  project (.convoke/agents/reviewer.md)
      tools   grep, read_file
      allow   read, search, think, agent
      deny    edit, delete, move, execute, fetch, other
      budget  3 turns, 2 m 00 s
    ");
    let shown = scene.json(&["agents", "show", "reviewer", "--json"]);
    assert_eq!(shown["effective"]["kinds"]["edit"], "deny");
    assert_eq!(shown["definition"]["max_turns"], "3");
    let unknown = scene.run(&["agents", "show", "reviewr"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("did you mean `reviewer`?"), "{}", unknown.stderr);
}

#[test]
fn a_new_agent_is_right_as_it_is() {
    let scene = Scene::new().variable("CONVOKE_TRUST_PROJECT", "1");
    let made = scene.run(&["agents", "new", "helper"]);
    assert_eq!((made.code, made.stdout.as_str()), (Some(0), ".convoke/agents/helper.md\n"));
    let checked = scene.run(&["agents", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(!checked.stdout.contains("warning"), "{}", checked.stdout);
    // Every key that is a comment in it can be used as it stands there.
    let text = scene.read(".convoke/agents/helper.md");
    let keys = text.split("---").nth(1).unwrap();
    let lines: Vec<&str> = keys.lines().collect();
    let is_key = |line: &str| {
        line.strip_prefix("# ").is_some_and(|rest| {
            rest.starts_with(|first: char| first.is_ascii_alphabetic())
                && rest.split(' ').next().is_some_and(|word| word.ends_with(':'))
        })
    };
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| is_key(line)) {
        let own = lines.iter().skip(index + 1).take_while(|line| line.starts_with("#  "));
        let block: String = std::iter::once(line[2..].to_owned())
            .chain(own.map(|line| line[2..].to_owned()))
            .collect::<Vec<_>>()
            .join("\n");
        let name = block.split(':').next().unwrap();
        let others = keys
            .lines()
            .filter(|line| !line.starts_with('#') && !line.starts_with(&format!("{name}:")));
        let others: Vec<&str> = others.collect();
        let file = format!("---\n{}\n{block}\n---\nWork.\n", others.join("\n").trim());
        let scene = Scene::new().file("x/helper.md", file);
        let checked = scene.run(&["agents", "check", "x/helper.md"]);
        assert_eq!(checked.code, Some(0), "{block}\n{}", checked.stdout);
        let warns = checked.stdout.contains("warning") && !["model", "commands"].contains(&name);
        assert!(!warns, "{block}\n{}", checked.stdout);
    }
    let again = scene.run(&["agents", "new", "helper"]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("already"), "{}", again.stderr);
    let bad = scene.run(&["agents", "new", "a b"]);
    assert_eq!(bad.code, Some(2), "{}", bad.stderr);
    let elsewhere = scene.json(&["agents", "new", "other", "--dir", "team", "--json"]);
    assert!(elsewhere["path"].as_str().unwrap().ends_with("/team/other.md"), "{elsewhere}");
}

#[test]
fn a_file_that_is_wrong_is_told_with_its_line() {
    let scene = Scene::new()
        .file(".convoke/agents/good.md", REVIEWER)
        .file(".convoke/agents/bad.md", "---\nname: bad\nmax_turns: many\n---\nWork.\n")
        .file(
            ".convoke/agents/lost.md",
            "---\nname: lost\ndescription: Is lost.\ntools: [read_file, reed_file]\nagents: [nobody]\n\
             colour: red\n---\nWork.\n",
        );
    let checked = scene.run(&["agents", "check"]);
    assert_eq!(checked.code, Some(7));
    assert_snapshot!(checked.stdout, @"
    ok  .convoke/agents/good.md (reviewer)
      tools   grep, read_file
      allow   read, search, think, agent
      deny    edit, delete, move, execute, fetch, other
      budget  5 turns, 10 m 00 s

    wrong  .convoke/agents/lost.md (lost)
      error: .convoke/agents/lost.md:4: key `tools`: there is no tool `reed_file` here; did you mean `read_file`, `edit_file` or `move_file`?
      warning: .convoke/agents/lost.md:5: key `agents`: there is no agent `nobody`
      warning: .convoke/agents/lost.md:6: key `colour`: this key is not known

    wrong  .convoke/agents/bad.md (bad)
      error: .convoke/agents/bad.md:1: key `description`: there is no description; say in a sentence what the agent is good for: models choose by it
      error: .convoke/agents/bad.md:3: key `max_turns`: expected a whole number from 1 to 100000, found `many`

    3 agents, 2 wrong
    ");
    let one = scene.run(&["agents", "check", ".convoke/agents/good.md"]);
    assert_eq!(one.code, Some(0), "{one:?}");
    let json = scene.json(&["agents", "check", ".convoke/agents/bad.md", "--json"]);
    assert_eq!((&json[0]["ok"], &json[0]["problems"][1]["line"]), (&json!(false), &json!(3)));
    let missing = scene.run(&["agents", "check", "no/such.md"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("there is no file `no/such.md`"), "{}", missing.stderr);
}

/// gemini-cli 4.22: a flag or a variable is enough, so what works here works where nobody can be asked.
#[test]
fn agents_of_a_project_that_is_not_trusted_are_not_there() {
    let scene = Scene::new().file(".convoke/agents/reviewer.md", REVIEWER);
    let listed = scene.run(&["agents", "list"]);
    assert!(!listed.stdout.contains("reviewer"), "{}", listed.stdout);
    for said in ["1 agent is left out", "convoke config trust", "CONVOKE_TRUST_PROJECT=1"] {
        assert!(listed.stderr.contains(said), "{}", listed.stderr);
    }
    let run = scene.run(&["agents", "run", "reviewer", "x"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("which is not trusted"), "{}", run.stderr);
    assert!(scene.stdout(&["agents", "list", "--trust-project"]).contains("reviewer"));
    // A folder can be trusted without a file, and not what such a file says later.
    let trusted = scene.run(&["config", "trust", "--yes"]);
    assert_eq!(trusted.code, Some(0));
    let said = "the agents in [root]/home/project/.convoke/agents can then be called:";
    assert!(trusted.stderr.contains(said), "{}", trusted.stderr);
    assert!(trusted.stderr.contains("trusted [root]/home/project as it is now"), "{trusted:?}");
    assert!(scene.stdout(&["agents", "list"]).contains("reviewer"));
    let again = scene.run(&["config", "trust", "--yes"]);
    assert!(again.stderr.contains("[root]/home/project is trusted already"), "{again:?}");
    let scene = scene.file("convoke.yml", "budget: {turns: 5}\n");
    assert!(scene.stdout(&["agents", "list"]).contains("reviewer"), "the agent did not change");
    fs::remove_file(scene.project().join("convoke.yml")).unwrap();
    assert_eq!(scene.run(&["config", "untrust"]).code, Some(0));
    assert!(!scene.stdout(&["agents", "list"]).contains("reviewer"));
    fs::remove_dir_all(scene.project().join(".convoke")).unwrap();
    let nothing = scene.run(&["config", "trust", "--yes"]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    assert!(nothing.stderr.contains("that has to be trusted"), "{nothing:?}");
}

fn world(script: Vec<Reaction>) -> World {
    let mut world = World::new(script);
    world.scene = world
        .scene
        .file(".convoke/agents/reviewer.md", REVIEWER)
        .file("a.txt", "one\n")
        .variable("CONVOKE_TRUST_PROJECT", "1");
    world
}

fn agent(world: &World, arguments: &[&str]) -> Ran {
    let usual = ["agents", "run", "--model", "openai-chat/some-model", "--set", "model.retries=0"];
    world.scene.run(&[&usual[..], arguments].concat())
}

#[test]
fn an_agent_works_by_itself() {
    let world = world(vec![
        Reply::default().call("read_file", json!({ "path": "a.txt" })).into(),
        Reply::default().call("write_file", json!({ "path": "b.txt", "content": "x" })).into(),
        done("It says one."),
    ]);
    let ran = agent(&world, &["reviewer", "a.txt"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "It says one.\n"), "{ran:?}");
    let first = String::from_utf8(world.server.requests()[0].body.clone()).unwrap();
    let first: Value = serde_json::from_str(&first).unwrap();
    let system = first["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("You are the reviewer. Look at a.txt."), "{system}");
    let tools = first["tools"].as_array().unwrap();
    let names: Vec<&str> =
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["grep", "read_file", "complete_task"]);
    assert!(!world.scene.project().join("b.txt").exists(), "it has no such tool");
}

#[test]
fn inputs_are_given_by_name_and_checked() {
    let file = "---\nname: typed\ndescription: Is typed.\ntools: []\ninputs:\n  target: {type: string, \
                description: What.}\n  depth: {type: integer, description: How deep.}\noutput:\n  name: \
                report\n  description: It.\n  schema: {type: object, properties: {n: {type: integer}}, \
                required: [n]}\n---\nLook at ${target} to ${depth}.\n";
    let answer = Reply::default().call("complete_task", json!({ "report": { "n": 3 } }));
    let mut world = world(vec![answer.clone().into(), answer.into()]);
    world.scene = world.scene.file(".convoke/agents/typed.md", file);
    let named = ["typed", "--input", "target=@a.txt", "--input", "depth=2", "--output", "json"];
    let ran = agent(&world, &named);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["status"], &report["answer"]), (&json!("completed"), &json!({ "n": 3 })));
    let body = String::from_utf8(world.server.requests()[0].body.clone()).unwrap();
    assert!(body.contains("Look at one\\n to 2."), "{body}");
    let wrong = agent(&world, &["typed", "--inputs", r#"{"target": "a", "depth": "deep"}"#]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("depth"), "{}", wrong.stderr);
    let plain = agent(&world, &["typed", "just a prompt"]);
    assert_eq!(plain.code, Some(2), "{plain:?}");
    assert_eq!(world.requests(), 1, "nobody was asked for what cannot work");
}

/// A run of an agent that goes on is the same agent: it gets no tools and no rights of the main one.
#[test]
fn a_run_of_an_agent_is_resumed_as_that_agent() {
    let world = world(vec![
        done("First."),
        Reply::default().call("write_file", json!({ "path": "b.txt", "content": "x" })).into(),
        done("Second."),
    ]);
    assert_eq!(agent(&world, &["reviewer", "a.txt"]).code, Some(0));
    let resume =
        ["runs", "resume", "--last", "--mode", "full", "--set", "model.retries=0", "More."];
    let ran = world.scene.run(&resume);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Second.\n"), "{ran:?}");
    assert!(!world.scene.project().join("b.txt").exists());
    let chat = world.scene.run(&["chat", "--last"]);
    assert_eq!(chat.code, Some(2), "{chat:?}");
    assert!(chat.stderr.contains("`convoke runs resume"), "{}", chat.stderr);
    fs::remove_file(world.scene.project().join(".convoke/agents/reviewer.md")).unwrap();
    let gone = world.scene.run(&resume);
    assert_eq!(gone.code, Some(2), "{gone:?}");
    assert!(gone.stderr.contains("there is no agent `reviewer`"), "{}", gone.stderr);
}

#[test]
fn a_run_calls_an_agent_and_says_what_is_wrong_with_others() {
    let delegate = json!({ "agent_name": "reviewer", "prompt": "a.txt" });
    let mut world = world(vec![
        Reply::default().call("delegate_to_agent", delegate).into(),
        done("It is fine."),
        Reply::text("The reviewer says it is fine.").into(),
    ]);
    world.scene = world.scene.file(".convoke/agents/bad.md", "---\nname: bad\n---\nx\n");
    let ran = world.run(convoke_testkit::Wire::OpenAiChat, &["Review a.txt."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "The reviewer says it is fine.\n");
    assert!(
        ran.stderr.contains("bad.md:1: key `description`: there is no description"),
        "{}",
        ran.stderr
    );
}

/// An agent's own origin once hid where its run was started, which then could not be resumed there.
#[test]
fn a_run_that_called_an_agent_is_resumed_where_it_was_started() {
    let delegate = json!({ "agent_name": "reviewer", "prompt": "a.txt" });
    let world = world(vec![
        Reply::default().call("delegate_to_agent", delegate).into(),
        done("It is fine."),
        Reply::text("Done.").into(),
        Reply::default().call("ls", json!({})).into(),
        Reply::text("Here is a.txt.").into(),
    ]);
    assert_eq!(world.run(convoke_testkit::Wire::OpenAiChat, &["Review a.txt."]).code, Some(0));
    fs::create_dir(world.scene.root().join("home/elsewhere")).unwrap();
    let project = world.scene.project();
    let words = ["runs", "resume", "--last", "What is here?"];
    let mut command =
        world.scene.command(&[&["--cwd", project.to_str().unwrap()], &words[..]].concat());
    let ended = command.current_dir(world.scene.root().join("home/elsewhere")).output().unwrap();
    let ran = world.scene.ended(&ended);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let last = world.server.requests().pop().unwrap();
    let last: Value = serde_json::from_slice(&last.body).unwrap();
    let listed = last["messages"].as_array().unwrap().last().unwrap();
    assert!(listed["content"].to_string().contains("a.txt"), "it works where it did: {listed}");
}

#[test]
fn what_an_agent_changed_in_its_own_files_can_be_taken_over() {
    let file = "---\nname: copier\ndescription: Copies.\ntools: [write_file]\nworkspace: copy\n---\n\
                You are the copier.\n";
    let write =
        || Reply::default().call("write_file", json!({ "path": "b.txt", "content": "two\n" }));
    let delegate = json!({ "agent_name": "copier", "prompt": "Write b.txt." });
    let mut world = world(vec![
        Reply::default().call("delegate_to_agent", delegate).into(),
        write().into(),
        done("Written."),
        Reply::text("Done.").into(),
        write().into(),
        done("Written alone."),
    ]);
    world.scene = world.scene.file(".convoke/agents/copier.md", file);
    let quick = ["--mode", "full", "Go."];
    let ran = world.run(convoke_testkit::Wire::OpenAiChat, &quick);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("copier changed 1 file in a copy of its own"), "{}", ran.stderr);
    let b = world.scene.project().join("b.txt");
    assert!(!b.exists());
    let workspaces = world.scene.root().join("home/.local/share/convoke/workspaces");
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&workspaces).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.contains('.')).collect()
    };
    let child = names().pop().unwrap();
    assert!(ran.stderr.contains(&format!("convoke runs diff {child}")), "{}", ran.stderr);
    let none = world.scene.run(&["runs", "diff", "--last"]);
    assert!(none.stderr.contains(&format!("an agent it called has one: `{child}`")), "{none:?}");
    let diff = world.scene.stdout(&["runs", "diff", &child]);
    assert!(diff.contains("+two"), "{diff}");
    let kept = world.scene.run(&["runs", "gc"]);
    assert!(kept.stderr.contains(&format!("`convoke runs apply {child}`")), "{}", kept.stderr);
    assert_eq!(world.scene.run(&["runs", "apply", &child]).code, Some(0));
    assert_eq!(fs::read_to_string(&b).unwrap(), "two\n");
    assert_eq!(world.scene.run(&["runs", "rm", "--last", "--yes"]).code, Some(0));
    assert_eq!(names().len(), 0, "the workspaces of its agents go with a run");
    fs::remove_file(&b).unwrap();
    let ran = agent(&world, &["copier", "--mode", "full", "Write it."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!b.exists());
    assert_eq!(world.scene.run(&["runs", "apply", "--last"]).code, Some(0));
    assert!(b.exists(), "also those of one that works by itself");
}

/// The run of an agent that works by itself has one workspace, whoever asked for it.
#[test]
fn an_agent_by_itself_works_where_its_user_says() {
    let file = |kind: &str| {
        format!(
            "---\nname: {kind}\ndescription: Is it.\ntools: [write_file]\nworkspace: {kind}\n---\nWork.\n"
        )
    };
    let write = || Reply::default().call("write_file", json!({ "path": "b.txt", "content": "x" }));
    let mut world =
        world(vec![write().into(), done("Written."), write().into(), done("Not written.")]);
    for kind in ["copy", "readonly"] {
        world.scene = world.scene.file(&format!(".convoke/agents/{kind}.md"), file(kind));
    }
    for (kind, changed, code) in [("copy", 1, 0), ("readonly", 0, 3)] {
        let ran =
            agent(&world, &[kind, "--workspace", "copy", "--mode", "full", "-o", "json", "Go."]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let files = report["workspace"]["files"].as_array().unwrap();
        assert_eq!(files.len(), changed, "{kind}: {report}");
        assert!(!world.scene.project().join("b.txt").exists());
    }
}

#[test]
fn the_policy_of_an_agent_is_that_of_the_main_one_and_its_own() {
    let file = "---\nname: git\ndescription: Uses git.\ntools: [run_command]\ncommands: ['git log *']\n\
                rules:\n  - { effect: deny, path: 'x/**' }\n---\nUse git.\n";
    let scene = scene()
        .file(".convoke/agents/git.md", file)
        .user("policy: {kinds: {edit: allow}, rules: [{effect: deny, path: 'y/**'}]}");
    let shown = scene.stdout(&["policy", "show", "--agent", "git"]);
    for expected in
        ["y/**", "agent 1  deny", "only these commands\n  git log *\n", "edit     allow"]
    {
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
    assert_eq!(shown.matches("`y/**`").count(), 1, "the user's rules are shown once: {shown}");
    let planned = scene.json(&["policy", "show", "--agent", "main/reviewer", "--json"]);
    assert_eq!(planned["kinds"]["edit"], "deny");
    let unknown = scene.run(&["policy", "show", "--agent", "gti"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    let listed = scene.stdout(&["tools", "list", "--all", "--category", "agent"]);
    assert!(listed.contains("reviewer") && listed.contains("generalist"), "{listed}");
    assert!(!scene.stdout(&["tools", "list"]).contains("generalist"));
}

#[test]
fn a_message_for_an_agent_says_so_to_the_model() {
    let world = world(vec![Reply::text("It will look.").into()]);
    let usual = ["chat", "--model", "openai-chat/some-model", "--set", "model.retries=0"];
    let ran = world.scene.run_with(b"@reviewer look at @a.txt\n", &usual);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let body = String::from_utf8(world.server.requests()[0].body.clone()).unwrap();
    assert!(body.contains("is for the agent `reviewer`"), "{body}");
    assert!(body.contains("The file a.txt"), "{body}");
}

/// Every file of the corpus, good and bad, in the four forms, as `agents check` shows it.
#[test]
fn all_files_of_the_corpus_are_checked() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../agent/tests/data/agents");
    let mut files = 0;
    for (form, directory) in [
        ("convoke", ".convoke/agents"),
        ("claude", ".claude/agents"),
        ("gemini", ".gemini/agents"),
        ("opencode", ".opencode/agents"),
    ] {
        let mut scene = Scene::new();
        let mut open = vec![corpus.join(form)];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let below = path.strip_prefix(corpus.join(form)).unwrap().to_str().unwrap();
            scene = scene.file(&format!("{directory}/{below}"), fs::read(&path).unwrap());
            files += 1;
        }
        let checked = scene.run(&["agents", "check"]);
        assert_eq!(checked.code, Some(7), "{form}: some of them are wrong");
        assert_snapshot!(format!("agents_check_{form}"), checked.stdout);
    }
    assert!(files >= 40, "{files}");
}
