//! Runs with files of their own: what they change, how it is seen, and how it is taken over.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use convoke_testkit::{Reaction, Reply, Wire};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::run::World;
use crate::support::{Ran, Scene};

fn write(path: &str, content: &str) -> Reaction {
    Reply::default().call("write_file", json!({ "path": path, "content": content })).into()
}

/// Replaces a file that is there, which takes a look at it first.
fn rewrite(path: &str, encoding: &str, content: &str) -> Reaction {
    Reply::default()
        .call("read_file", json!({ "path": path, "encoding": encoding }))
        .call("write_file", json!({ "path": path, "content": content }))
        .into()
}

fn say(text: &str) -> Reaction {
    Reply::text(text).into()
}

fn git(scene: &Scene, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    let ran = scene.program(&[&["git"], &who[..], arguments].concat()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// A world whose project is a repository with one file.
fn world(script: Vec<Reaction>) -> World {
    let world = World::new(script);
    fs::write(world.scene.project().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    git(&world.scene, &["init", "--quiet", "-b", "main"]);
    git(&world.scene, &["add", "-A"]);
    git(&world.scene, &["commit", "--quiet", "-m", "first"]);
    world
}

fn workspaces(world: &World) -> PathBuf {
    world.scene.root().join("home/.local/share/convoke/workspaces")
}

fn left(world: &World) -> Vec<String> {
    let Ok(entries) = fs::read_dir(workspaces(world)) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Takes out what is different each time.
fn stable(ran: &Ran, world: &World) -> String {
    let id = id(world);
    let lines: Vec<String> = ran
        .shown()
        .replace(&id, "[run]")
        .lines()
        .map(|line| match line.split_once(" in, ") {
            Some(_) => "[usage]".to_owned(),
            None if line.contains(" ... ok ") => {
                let (call, rest) = line.split_once(" ... ok ").unwrap();
                let shown = rest.split_once(" (").map_or("", |(_, shown)| shown);
                format!("{call} ... ok [time] ({shown}")
            }
            None if line.starts_with("index ") => "index [hashes]".to_owned(),
            None => line.to_owned(),
        })
        .collect();
    lines.join("\n")
}

fn id(world: &World) -> String {
    let runs = world.scene.json(&["runs", "list", "--json"]);
    runs[0]["run"].as_str().unwrap().to_owned()
}

fn change(kind: &str) -> World {
    let world = world(vec![
        rewrite("a.txt", "utf-8", "one\n2\nthree\n"),
        write("new.txt", "x\n"),
        say("Done."),
    ]);
    let ran = world.run(Wire::OpenAiChat, &["--workspace", kind, "--mode", "full", "Go."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    world
}

/// What is not UTF-8 was once replaced, and the patch fitted nowhere.
#[test]
fn a_diff_in_a_pipe_is_what_it_is_byte_for_byte() {
    let world = world(vec![rewrite("latin.txt", "latin1", "coffee\n"), say("Done.")]);
    fs::write(world.scene.project().join("latin.txt"), b"caf\xe9\n").unwrap();
    let ran = world.run(Wire::OpenAiChat, &["--workspace", "worktree", "--mode", "full", "Go."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let piped = world.scene.command(&["runs", "diff", "--last"]).output().unwrap();
    assert!(piped.stdout.windows(6).any(|part| part == b"-caf\xe9\n"), "{piped:?}");
}

#[test]
fn a_run_in_a_worktree_says_what_it_changed_and_how_to_take_it_over() {
    let world = world(vec![rewrite("a.txt", "utf-8", "one\n2\nthree\n"), say("Done.")]);
    let ran = world.run(Wire::OpenAiChat, &["--workspace", "worktree", "--mode", "full", "Go."]);
    assert_snapshot!(stable(&ran, &world), @"
    Done.
    --- stderr
    works in its own worktree: [root]/home/.local/share/convoke/workspaces/[run]
    read_file a.txt ... ok [time] (3 lines)
    write_file a.txt ... ok [time] (+1 -1)
    [usage]
    1 file changed in the worktree; yours are as they were:
      M a.txt  +1 -1
      to see it:       convoke runs diff [run]
      to take it over: convoke runs apply [run]
    --- exit 0
    ");
    assert_eq!(world.scene.read("a.txt"), "one\ntwo\nthree\n");
    assert_eq!(git(&world.scene, &["status", "--porcelain"]), "");
    let ran = world.scene.run(&["runs", "diff", "--last"]);
    assert_snapshot!(stable(&ran, &world), @"
    diff --git a/a.txt b/a.txt
    index [hashes]
    --- a/a.txt
    +++ b/a.txt
    @@ -1,3 +1,3 @@
     one
    -two
    +2
     three
    --- stderr
    1 file changed in the worktree
    --- exit 0
    ");
    let ran = world.scene.run(&["runs", "apply", "--last"]);
    assert_snapshot!(stable(&ran, &world), @"
    M a.txt  +1 -1
    --- stderr
    1 file changed in [root]/home/project
    --- exit 0
    ");
    assert_eq!(world.scene.read("a.txt"), "one\n2\nthree\n");
    let ran = world.scene.run(&["runs", "replay", "--last"]);
    assert!(ran.stdout.contains(": the same; "), "{ran:?}");
}

#[test]
fn a_copy_works_without_git() {
    let world = change("copy");
    let ran = world.scene.run(&["runs", "diff", "--last", "--stat"]);
    assert_snapshot!(stable(&ran, &world), @"
    M a.txt  +1 -1
    A new.txt  +1 -0
    --- stderr
    2 files changed in the copy
    --- exit 0
    ");
    let told = world.scene.json(&["runs", "diff", "--last", "--json"]);
    assert_eq!((&told["kind"], &told["run"]), (&json!("copy"), &json!(id(&world))));
    assert!(told["diff"].as_str().unwrap().contains("-two\n+2\n"), "{told}");
    let ran = world.scene.run(&["runs", "apply", "--last", "--check"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.scene.read("a.txt"), "one\ntwo\nthree\n");
    let told = world.scene.json(&["runs", "apply", "--last", "--json"]);
    assert_eq!((&told["applied"], told["files"].as_array().unwrap().len()), (&json!(true), 2));
    assert_eq!(world.scene.read("new.txt"), "x\n");
}

#[test]
fn the_report_of_a_run_has_its_changes() {
    let world = world(vec![rewrite("a.txt", "utf-8", "one\n"), say("Done.")]);
    let flags = ["--workspace", "worktree", "--mode", "full", "--output", "json", "Go."];
    let ran = world.run(Wire::OpenAiChat, &flags);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let workspace = &report["workspace"];
    assert_eq!(workspace["kind"], "worktree", "{report}");
    assert_eq!(workspace["branch"], format!("convoke/{}", id(&world)));
    let file = json!({ "path": "a.txt", "change": "modified", "added": 0, "removed": 2 });
    assert_eq!(workspace["files"], json!([file]));
    assert!(workspace["diff"].as_str().unwrap().contains("-two\n-three\n"));
}

#[test]
fn a_workspace_without_changes_is_removed() {
    let world = world(vec![say("Nothing to do."), write("b.txt", "b\n"), say("Now there is.")]);
    let ran = world.run(Wire::OpenAiChat, &["--workspace", "worktree", "--mode", "full", "Go."]);
    assert!(ran.stderr.contains("nothing was changed in the worktree"), "{ran:?}");
    assert_eq!(left(&world), [""; 0]);
    assert_eq!(git(&world.scene, &["branch", "--list", "convoke/*"]), "");
    // It goes on in a new one.
    let ran = world.scene.run(&["runs", "resume", "--last", "--mode", "full", "More."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("it gets a new one"), "{ran:?}");
    assert_eq!(world.scene.run(&["runs", "apply", "--last"]).code, Some(0));
    assert_eq!(world.scene.read("b.txt"), "b\n");
}

#[test]
fn a_run_goes_on_in_its_workspace_or_says_that_it_is_gone() {
    let world = world(vec![
        write("b.txt", "b\n"),
        say("First."),
        Reply::default().call("read_file", json!({ "path": "b.txt" })).into(),
        say("Second."),
    ]);
    let ran = world.run(Wire::OpenAiChat, &["--workspace", "worktree", "--mode", "full", "Go."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = world.scene.run(&["runs", "resume", "--last", "--mode", "full", "More."]);
    assert!(ran.stderr.contains("read_file b.txt ... ok"), "{ran:?}");
    let ran = world.scene.run(&["runs", "fork", "--last", "--mode", "full", "Otherwise."]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("cannot be forked"), "{ran:?}");
    fs::remove_dir_all(workspaces(&world).join(id(&world))).unwrap();
    let ran = world.scene.run(&["runs", "resume", "--last", "--mode", "full", "More."]);
    assert_eq!(ran.code, Some(9), "{ran:?}");
    assert!(ran.stderr.contains("is gone"), "{ran:?}");
    let ran = world.scene.run(&["runs", "diff", "--last"]);
    assert!(ran.stdout.contains("+++ b/b.txt"), "what was recorded is shown: {ran:?}");
}

#[test]
fn nothing_that_was_not_applied_goes_without_a_word() {
    let world = change("worktree");
    let run = id(&world);
    let ran = world.scene.run(&["runs", "gc", "--keep", "0"]);
    assert!(ran.stderr.contains("were not applied"), "{ran:?}");
    assert!(workspaces(&world).join(&run).is_dir());
    let ran = world.scene.run(&["runs", "rm", &run]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("were not applied: they go with it"), "{ran:?}");
    assert!(workspaces(&world).join(&run).is_dir());
    let ran = world.scene.run(&["runs", "rm", &run, "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(left(&world), [""; 0]);
    assert_eq!(git(&world.scene, &["branch", "--list", "convoke/*"]), "");
    assert_eq!(git(&world.scene, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_run_whose_changes_were_applied_is_collected_with_its_workspace() {
    let world = change("copy");
    assert_eq!(world.scene.run(&["runs", "apply", "--last"]).code, Some(0));
    let ran = world.scene.run(&["runs", "gc", "--keep", "0"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(left(&world), [""; 0]);
}

#[test]
fn what_the_user_changed_meanwhile_is_named() {
    let world = change("worktree");
    fs::write(world.scene.project().join("a.txt"), "something else\n").unwrap();
    let ran = world.scene.run(&["runs", "apply", "--last"]);
    assert_snapshot!(stable(&ran, &world), @"
    --- stderr
    error: the changes do not fit `[root]/home/project` as it is now, so nothing was changed
    cause: a.txt (patch does not apply)
    hint: somebody changed these files meanwhile; `convoke runs diff` shows what was to be changed, and the workspace still has all of it
    --- exit 1
    ");
    assert!(!world.scene.project().join("new.txt").exists());
}

#[test]
fn what_a_killed_run_leaves_is_found() {
    let world = world(vec![write("b.txt", "b\n"), Reaction::silent()]);
    let command =
        ["run", "--model", "openai-chat/m", "--workspace", "worktree", "--mode", "full", "Go."];
    let mut command = world.scene.command(&command);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..2 {
        world.threads.block_on(world.server.next_request());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = world.scene.run(&["runs", "diff", "--last", "--stat"]);
    assert_eq!(ran.stdout, "A b.txt  +1 -0\n", "{ran:?}");
    // Somebody removes the record of it by hand.
    fs::remove_dir_all(world.scene.root().join("home/.local/state/convoke/runs")).unwrap();
    let ran = world.scene.run(&["doctor"]);
    assert!(ran.stdout.contains("1 workspace of no run any more"), "{ran:?}");
    let ran = world.scene.run(&["runs", "gc"]);
    assert!(ran.stderr.contains("kept, since its workspace holds"), "{ran:?}");
}

#[test]
fn where_it_cannot_be_made_nothing_begins() {
    let world = World::new(vec![say("never")]);
    let ran = world.run(Wire::OpenAiChat, &["--workspace", "worktree", "Go."]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("not a git repository"), "{ran:?}");
    assert!(ran.stderr.contains("hint: `--workspace copy` works without git"), "{ran:?}");
    let ran = world.run(Wire::OpenAiChat, &["--workspace", "copy", "--no-journal", "Go."]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(world.server.requests().len(), 0);
    assert_eq!(left(&world), [""; 0]);
    let ran = world.scene.run(&["doctor"]);
    assert!(ran.stdout.contains("copies can be made; no worktree"), "{ran:?}");
}

#[test]
fn a_project_can_only_choose_a_stricter_one() {
    let world = world(vec![write("a.txt", "x\n"), say("I could not.")]);
    let project = world.scene.project();
    fs::write(project.join("convoke.yml"), "agent: { workspace: readonly }\n").unwrap();
    let ran = world.run(Wire::OpenAiChat, &["--mode", "full", "Go."]);
    assert!(ran.stderr.contains("the workspace is `readonly`"), "{ran:?}");
    assert_eq!(world.scene.read("a.txt"), "one\ntwo\nthree\n");
    let user = world.scene.root().join("home/.config/convoke");
    fs::create_dir_all(&user).unwrap();
    fs::write(user.join("convoke.yml"), "agent: { workspace: copy }\n").unwrap();
    for looser in ["shared", "worktree"] {
        let text = format!("agent: {{ workspace: {looser} }}\n");
        fs::write(project.join("convoke.yml"), text).unwrap();
        let shown = world.scene.run(&["config", "check"]);
        let said = format!("`{looser}` is ignored: a project cannot loosen your `copy`");
        assert!(shown.stderr.contains(&said), "{shown:?}");
    }
}

#[test]
fn a_chat_works_in_one_workspace() {
    let world = world(vec![write("b.txt", "b\n"), say("First."), say("Second.")]);
    let flags = ["chat", "--model", "openai-chat/m", "--workspace", "worktree", "--mode", "full"];
    let ran = world.scene.run_with(b"Go.\n/clear\nMore.\n", &flags);
    assert!(ran.stdout.contains("First.") && ran.stdout.contains("Second."), "{ran:?}");
    assert!(ran.stderr.contains("which no other can use"), "{ran:?}");
    let ran = world.scene.run(&["runs", "diff", "--last", "--stat"]);
    assert_eq!(ran.stdout, "A b.txt  +1 -0\n", "{ran:?}");
}

#[test]
fn a_new_conversation_after_a_kept_one_is_another_run() {
    let world = world(vec![say("First."), say("Second."), say("Third.")]);
    let chat = ["chat", "--model", "openai-chat/m"];
    world.scene.run_with(b"Go.\n", &chat);
    let ran = world.scene.run_with(b"More.\n/clear\nAnew.\n", &["chat", "--last"]);
    assert!(ran.stdout.contains("Second.") && ran.stdout.contains("Third."), "{ran:?}");
    let runs = world.scene.json(&["runs", "list", "--json"]);
    assert_eq!(runs.as_array().unwrap().len(), 2, "{runs}");
}

#[test]
fn a_workspace_whose_repository_is_gone_is_kept_until_somebody_says_otherwise() {
    let world = change("worktree");
    let run = id(&world);
    fs::remove_dir_all(world.scene.project().join(".git")).unwrap();
    let ran = world.scene.run(&["runs", "gc", "--keep", "0"]);
    assert!(ran.stderr.contains("kept, since its workspace holds"), "{ran:?}");
    let ran = world.scene.run(&["runs", "diff", &run]);
    assert_eq!(ran.code, Some(9), "{ran:?}");
    let ran = world.scene.run(&["runs", "rm", &run, "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(left(&world), [""; 0]);
}

/// A world with an agent that works in files of its own.
fn world_with_agent(kind: &str, script: Vec<Reaction>) -> World {
    let mut world = world(script);
    let file = format!(
        "---\nname: tree\ndescription: Is tree.\ntools: [write_file]\nworkspace: {kind}\n---\nWork.\n"
    );
    world.scene =
        world.scene.variable("CONVOKE_TRUST_PROJECT", "1").file(".convoke/agents/tree.md", file);
    world
}

fn delegate() -> Reaction {
    let arguments = json!({ "agent_name": "tree", "prompt": "Go." });
    Reply::default().call("delegate_to_agent", arguments).into()
}

fn done() -> Reaction {
    Reply::default().call("complete_task", json!({ "result": "Done." })).into()
}

/// The id of the agent that the last run called, as its journal has it.
fn agent_of(world: &World) -> String {
    let root = id(world);
    let runs = world.scene.root().join("home/.local/state/convoke/runs");
    let journal = fs::read_to_string(runs.join(&root).join("journal.jsonl")).unwrap();
    let (_, rest) = journal.split_once(&format!("\"run\":\"{root}-")).unwrap();
    let (below, _) = rest.split_once('"').unwrap();
    format!("{root}-{below}")
}

/// Bug: what a run undid after it was applied stayed in the user's files.
#[test]
fn what_a_run_undid_after_it_was_applied_is_taken_back() {
    for kind in ["worktree", "copy"] {
        let world = world(vec![
            rewrite("a.txt", "utf-8", "one\n2\nthree\n"),
            say("First."),
            say("Nothing more."),
            write("a.txt", "one\ntwo\nthree\n"),
            say("Undone."),
        ]);
        let ran = world.run(Wire::OpenAiChat, &["--workspace", kind, "--mode", "full", "Go."]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(world.scene.run(&["runs", "apply", "--last"]).code, Some(0));
        assert_eq!(world.scene.read("a.txt"), "one\n2\nthree\n");
        // The workspace stays, although all of it was applied.
        for message in ["More?", "Undo it."] {
            let ran = world.scene.run(&["runs", "resume", "--last", "--mode", "full", message]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
        let ran = world.scene.run(&["runs", "apply", "--last", "--check"]);
        let said = "  would be taken back, because it was undone after it was applied: 1 file";
        assert!(ran.stderr.contains(said), "nothing is done yet: {ran:?}");
        let ran = world.scene.run(&["runs", "apply", "--last"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "M a.txt  +1 -1\n"), "{ran:?}");
        assert!(ran.stderr.contains("undone after it was applied: 1 file"), "{ran:?}");
        assert_eq!(world.scene.read("a.txt"), "one\ntwo\nthree\n");
        let ran = world.scene.run(&["runs", "apply", "--last"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
        assert!(ran.stderr.contains("nothing was changed"), "{ran:?}");
    }
}

#[test]
fn what_changed_nothing_says_so_when_it_is_applied() {
    let world = world_with_agent("copy", vec![delegate(), done(), say("Done.")]);
    let ran = world.run(Wire::OpenAiChat, &["--mode", "full", "--workspace", "worktree", "Go."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(left(&world), [""; 0]);
    for id in [id(&world), agent_of(&world)] {
        let ran = world.scene.run(&["runs", "apply", &id]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("nothing was changed, so there is nothing"), "{ran:?}");
        let told = world.scene.json(&["runs", "apply", &id, "--json"]);
        assert_eq!((&told["run"], &told["applied"]), (&json!(id), &json!(false)), "{told}");
        assert_eq!(world.scene.run(&["runs", "diff", &id, "--stat"]).code, Some(0));
    }
}

/// Bug: the workspace of an agent went as soon as it was applied, although its run could be taken up again.
#[test]
fn the_workspace_of_an_agent_goes_with_its_run() {
    for kind in ["worktree", "copy"] {
        let script = vec![delegate(), write("b.txt", "b\n"), done(), say("Done.")];
        let world = world_with_agent(kind, script);
        let ran = world.run(Wire::OpenAiChat, &["--mode", "full", "Go."]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let (root, agent) = (id(&world), agent_of(&world));
        let kept = world.scene.run(&["runs", "gc", "--keep", "0"]);
        assert!(kept.stderr.contains(&format!("{agent} kept with its run")), "{kept:?}");
        assert_eq!((id(&world), kept.stdout.as_str()), (root.clone(), ""), "{kept:?}");
        assert_eq!(world.scene.run(&["runs", "apply", &agent]).code, Some(0));
        let kept = world.scene.run(&["runs", "gc", "--older-than", "30d"]);
        assert_eq!((kept.code, kept.stdout.as_str()), (Some(0), ""), "{kept:?}");
        assert!(workspaces(&world).join(&agent).is_dir());
        let checked = world.scene.run(&["doctor"]);
        assert!(!checked.stdout.contains("of no run any more"), "{checked:?}");
        let gone = world.scene.run(&["runs", "gc", "--keep", "0"]);
        assert!(gone.stdout.contains(&format!("removed {root}, ")), "{gone:?}");
        assert!(!gone.stdout.contains("no run any more"), "{gone:?}");
        assert_eq!(left(&world), [""; 0]);
        assert_eq!(git(&world.scene, &["branch", "--list", "convoke/*"]), "");
    }
}
