//! Runs are kept, whatever happens to the process, the disk or the file, and go on.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};

use convoke_testkit::{Reaction, Reply, Wire};
use serde_json::{Value, json};

use crate::run::World;
use crate::support::Ran;

fn look() -> Reaction {
    Reply::default().call("read_file", json!({ "path": "a.txt" })).into()
}

fn say(text: &str) -> Reaction {
    Reply::text(text).into()
}

fn world(script: Vec<Reaction>) -> World {
    let world = World::new(script);
    fs::write(world.scene.project().join("a.txt"), "one\n").unwrap();
    world
}

impl World {
    /// The directory of the only run there is.
    fn directory(&self) -> PathBuf {
        let runs = self.scene.root().join("home/.local/state/convoke/runs");
        let mut found: Vec<PathBuf> =
            fs::read_dir(&runs).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    fn id(&self) -> String {
        self.directory().file_name().unwrap().to_str().unwrap().to_owned()
    }

    fn journal(&self) -> PathBuf {
        self.directory().join("journal.jsonl")
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.journal()).unwrap().lines().map(str::to_owned).collect()
    }

    fn write(&self, lines: &[String]) {
        fs::write(self.journal(), lines.join("\n") + "\n").unwrap();
    }

    fn resume(&self, words: &[&str]) -> Ran {
        self.scene.run(&[&["runs", "resume", "--set", "model.retries=0"], words].concat())
    }

    /// Starts a run and waits until the model was asked so many times.
    fn start(&self, asked: usize) -> Child {
        let child = self.scene.command(&["run", "--model", "openai-chat/m", "Go."]).spawn();
        for _ in 0..asked {
            self.threads.block_on(self.server.next_request());
        }
        child.unwrap()
    }
}

#[test]
fn a_run_that_was_killed_goes_on_where_it_was() {
    let world = world(vec![look(), Reaction::silent(), say("It says one.")]);
    let mut child = world.start(2);
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = world.resume(&["--last"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "It says one.\n"), "{ran:?}");
    let requests = world.server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[1].body, requests[2].body, "the same question, byte for byte");
    let ran = world.scene.run(&["runs", "replay", "--last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains(": the same; "), "{ran:?}");
}

#[test]
fn a_run_that_is_done_goes_on_with_a_message() {
    let world = world(vec![say("Done."), say("More.")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["Go."]).code, Some(0));
    let ran = world.resume(&["--last"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    let id = world.id();
    let part = &id[id.len() - 5..];
    let ran = world.resume(&[part, "And more?", "--output", "json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["answer"], &report["run"]), (&json!("More."), &json!(id)), "{ran:?}");
    let second = world.server.requests().remove(1);
    let body: Value = serde_json::from_slice(&second.body).unwrap();
    let said: Vec<&str> =
        body["messages"].as_array().unwrap().iter().filter_map(|m| m["content"].as_str()).collect();
    assert_eq!(said[1..], ["Go.", "Done.", "And more?"]);
}

#[test]
fn a_run_keeps_its_place_its_tools_and_its_limits() {
    let world = world(vec![look(), say("One."), say("Two.")]);
    let flags = ["--tools", "read_file", "--max-turns", "7", "--mode", "plan", "Go."];
    assert_eq!(world.run(Wire::OpenAiChat, &flags).code, Some(0));
    let elsewhere = world.scene.root().join("home");
    let project = world.scene.project().to_str().unwrap().to_owned();
    let ran = world
        .scene
        .command(&["runs", "resume", "--last", "More.", "--cwd", &project])
        .current_dir(elsewhere)
        .output();
    assert_eq!(ran.unwrap().status.code(), Some(0));
    let requests = world.server.requests();
    let [first, last] = [&requests[0], &requests[2]]
        .map(|request| serde_json::from_slice::<Value>(&request.body).unwrap());
    assert_eq!(first["tools"], last["tools"]);
    assert_eq!(first["messages"][0], last["messages"][0], "the same instructions");
    assert_eq!(first["model"], last["model"]);
    let resumed = world.lines().into_iter().find(|line| line.contains("run_resumed")).unwrap();
    assert!(!resumed.contains("settings"), "nothing about it changed: {resumed}");
}

#[test]
fn only_one_process_works_on_a_run() {
    let world = world(vec![Reaction::silent()]);
    let mut child = world.start(1);
    let ran = world.resume(&["--last"]);
    assert_eq!(ran.code, Some(9), "{ran:?}");
    let pid = format!("process {}", child.id());
    assert!(ran.stderr.contains("is being worked on") && ran.stderr.contains(&pid), "{ran:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_file_size_limit_ends_the_run_and_loses_nothing_that_was_accepted() {
    let world = world(vec![look(), say("never recorded"), say("Now it fits.")]);
    fs::write(world.scene.project().join("a.txt"), "x\n".repeat(30_000)).unwrap();
    let mut shell = Command::new("sh");
    let command = world.scene.command(&["run", "--model", "openai-chat/m", "Go."]);
    let script = "ulimit -f 40; exec \"$0\" \"$@\"";
    shell.arg("-c").arg(script).arg(command.get_program()).args(command.get_args());
    shell.env_clear().current_dir(world.scene.project());
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap());
    }
    let ran = world.scene.ended(&shell.output().unwrap());
    assert_eq!(ran.code, Some(9), "{ran:?}");
    assert!(ran.stderr.contains("no space is left within the file-size limit"), "{ran:?}");
    assert!(ran.stderr.contains("resume"), "{ran:?}");
    let kept = world.lines().len();
    let ran = world.resume(&["--last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(world.lines().len() > kept, "it went on in the same journal");
}

#[test]
fn a_state_directory_that_cannot_be_written_is_named() {
    let world = world(vec![say("unheard"), say("not kept")]);
    let state = world.scene.root().join("home/.local");
    fs::create_dir_all(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o555)).unwrap();
    for path in ["", "home", "home/project"] {
        let path = world.scene.root().join(path);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = |flags: &[&str]| {
        let mut command = world.scene.command(&["run", "--model", "openai-chat/m"]);
        command.args(flags);
        // Nothing is forbidden to root.
        if rustix::process::geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
        world.scene.ended(&command.output().unwrap())
    };
    let ran = run(&["Go."]);
    assert_eq!((ran.code, world.requests()), (Some(9), 0), "{ran:?}");
    assert!(ran.stderr.contains("[root]/home/.local/state"), "{ran:?}");
    assert!(ran.stderr.contains("--state") && ran.stderr.contains("--no-journal"), "{ran:?}");
    assert_eq!(run(&["--no-journal", "Go."]).code, Some(0));
}

#[test]
fn a_torn_line_is_cut_off_and_said() {
    let world = world(vec![look(), Reaction::silent(), say("One.")]);
    let mut child = world.start(2);
    child.kill().unwrap();
    child.wait().unwrap();
    let whole = world.lines();
    let mut file = fs::OpenOptions::new().append(true).open(world.journal()).unwrap();
    file.write_all(br#"{"prev":"0123","v":1,"seq":"#).unwrap();
    let ran = world.resume(&["--last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("27 bytes that were never accepted were cut off"), "{ran:?}");
    assert_eq!(world.lines()[..whole.len()], whole);
}

#[test]
fn damage_in_the_middle_is_told_and_the_part_before_it_can_be_forked() {
    let world = world(vec![look(), say("One."), say("Again.")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["Go."]).code, Some(0));
    let mut lines = world.lines();
    let middle = lines.len() / 2;
    lines[middle] = "garbage".to_owned();
    world.write(&lines);
    let id = world.id();
    let ran = world.resume(&["--last", "More."]);
    assert_eq!(ran.code, Some(9), "{ran:?}");
    for words in [&["replay", &id][..], &["fork", &id, "More."]] {
        let ran = world.scene.run(&[&["runs"], words].concat());
        assert_eq!(ran.code, Some(9), "{words:?}: {ran:?}");
    }
    let way_out = format!("convoke runs fork {id} --at {}", middle - 1);
    assert!(ran.stderr.contains("damaged") && ran.stderr.contains(&way_out), "{ran:?}");
    assert_eq!(world.lines(), lines, "nothing was changed");
    let at = (middle - 1).to_string();
    let dry = world.scene.run(&["runs", "fork", &id, "--at", &at, "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert!(
        dry.stdout.contains(&format!("inherits {at} events of {id}: 1 turn, about ")),
        "{dry:?}"
    );
    let ran = world.scene.run(&["runs", "fork", &id, "--at", &at]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Again.\n"), "{ran:?}");
    assert!(ran.stderr.contains(&format!("inherits {at} events of {id}")), "{ran:?}");
}

#[test]
fn a_journal_of_a_newer_program_is_left_alone() {
    let world = world(vec![say("Done.")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["Go."]).code, Some(0));
    let mut lines = world.lines();
    lines[0] = lines[0].replace(r#"{"journal":1,"#, r#"{"journal":7,"#);
    world.write(&lines);
    let id = world.id();
    for words in [&["resume", &id, "x"][..], &["replay", &id], &["fork", &id]] {
        let ran = world.scene.run(&[&["runs"], words].concat());
        assert_eq!(ran.code, Some(9), "{ran:?}");
        assert!(ran.stderr.contains("format 7") && ran.stderr.contains("update"), "{ran:?}");
    }
    assert_eq!(world.lines(), lines);
}

#[test]
fn a_run_comes_out_the_same_again() {
    let world = world(vec![look(), say("One.")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["Go."]).code, Some(0));
    let same = world.scene.json(&["runs", "replay", "--last", "--json"]);
    assert_eq!((&same["same"], &same["run"]), (&json!(true), &json!(world.id())));
    assert!(same["decided"].as_u64().unwrap() > 5, "{same}");
}

#[test]
fn runs_are_named_by_any_part_that_is_theirs_alone() {
    let world = world(vec![]);
    let ran = world.resume(&["nothing-like-it"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let ran = world.scene.run(&["runs", "replay"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("the run is not named") && ran.stderr.contains("--last"),
        "{ran:?}"
    );
    for bad in ["../../etc", "a/b", "", "..", &"x".repeat(5_000)] {
        let ran = world.resume(&[bad]);
        assert_eq!(ran.code, Some(2), "{bad:.20}: {ran:?}");
    }
    assert_eq!(world.resume(&["--last", "a", "b"]).code, Some(2));
}

#[test]
fn without_a_home_a_run_works_and_says_that_nothing_is_kept() {
    let world = world(vec![say("Hello.")]);
    let mut command = world.scene.command(&["run", "--model", "openai-chat/m", "Go."]);
    let ran = world.scene.ended(&command.env_remove("HOME").output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{ran:?}");
    assert!(ran.stderr.contains("nothing of this run is kept"), "{ran:?}");
}

#[test]
fn what_is_kept_is_for_the_user_alone() {
    let world = world(vec![look(), say("One.")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["Go."]).code, Some(0));
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(world.directory()), mode(world.journal())), (0o700, 0o600));
    assert!(!fs::read_to_string(world.journal()).unwrap().contains("sk-secret-word"));
}

#[test]
fn a_key_that_turns_up_somewhere_is_never_kept_shown_or_said_to_the_model() {
    let echo = Reply::text("Your key is sk-secret-word.")
        .call("read_file", json!({ "path": "leak.txt" }))
        .into();
    let world = world(vec![echo, say("It was sk-secret-word all along.")]);
    fs::write(world.scene.project().join("leak.txt"), "token: sk-secret-word\n").unwrap();
    for output in ["text", "json", "stream-json"] {
        drop(world.run(Wire::OpenAiChat, &["--output", output, "Is it sk-secret-word?"]));
    }
    let runs = world.scene.root().join("home/.local/state/convoke/runs");
    for run in fs::read_dir(runs).unwrap() {
        let journal = fs::read_to_string(run.unwrap().path().join("journal.jsonl")).unwrap();
        assert!(!journal.contains("sk-secret-word"), "{journal}");
        assert!(journal.contains("[secret ANTHROPIC_API_KEY]"), "{journal}");
    }
    let second = world.server.requests().remove(1);
    let body = String::from_utf8(second.body.clone()).unwrap();
    assert!(!body.contains("sk-secret-word") && body.contains("[secret "), "{body}");
}

#[test]
fn a_file_with_a_key_in_it_can_be_edited_and_keeps_the_key() {
    let edit = |old: &str, new: &str| {
        let arguments = json!({ "path": ".env", "old_string": old, "new_string": new });
        Reply::default().call("edit_file", arguments).into()
    };
    let key = "[secret ANTHROPIC_API_KEY]";
    let read = Reply::default().call("read_file", json!({ "path": ".env" })).into();
    let spell =
        Reply::default().call("run_command", json!({ "command": format!("echo '{key}'") })).into();
    let world = world(vec![
        edit("A=1", &format!("A={key}")),
        read,
        edit(&format!("KEY={key}"), &format!("TOKEN={key}")),
        spell,
        say("Done."),
    ]);
    fs::write(world.scene.project().join(".env"), "A=1\nKEY=sk-secret-word\n").unwrap();
    let ran = world.run(Wire::OpenAiChat, &["--mode", "full", "--output", "stream-json", "Go."]);
    assert_eq!(world.scene.read(".env"), "A=1\nTOKEN=sk-secret-word\n", "{ran:?}");
    let refused = ran.stdout.matches("stands for a secret that is not handed out here").count();
    assert!(refused >= 2, "a name nobody came across, and a program: {ran:?}");
}

#[test]
fn a_fork_of_a_run_that_is_done_needs_a_message_and_leaves_nothing_behind() {
    let world = world(vec![say("Done."), say("Once more.")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["Go."]).code, Some(0));
    let ran = world.scene.run(&["runs", "fork", "--last"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let id = world.id();
    let ran = world.scene.run(&["runs", "fork", &id, "Again."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Once more.\n"), "{ran:?}");
    for at in ["0", "99"] {
        let dry = world.scene.run(&["runs", "fork", &id, "--at", at, "--dry-run"]);
        assert_eq!(dry.code, Some(2), "{dry:?}");
    }
}

#[test]
fn the_last_run_is_the_one_that_was_last_worked_on() {
    let world = world(vec![say("One."), say("Two."), say("More of one."), say("Still one.")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["First."]).code, Some(0));
    let first = world.id();
    assert_eq!(world.run(Wire::OpenAiChat, &["Second."]).code, Some(0));
    assert_eq!(world.resume(&[&first, "More?"]).code, Some(0));
    let ran = world.resume(&["--last", "And more?", "--output", "json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["run"], json!(first), "{ran:?}");
}

#[test]
fn how_freely_a_run_may_act_is_remembered() {
    let world = world(vec![say("One."), say("Two."), say("Three.")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["--mode", "full", "Go."]).code, Some(0));
    assert_eq!(world.resume(&["--last", "--mode", "plan", "More."]).code, Some(0));
    assert_eq!(world.resume(&["--last", "And more."]).code, Some(0));
    let lines = world.lines();
    let mut resumed = lines.iter().filter(|line| line.contains("run_resumed"));
    assert!(resumed.next().unwrap().contains(r#""mode":"plan""#), "{lines:#?}");
    assert!(!resumed.next().unwrap().contains("mode"), "it is plan still: {lines:#?}");
}

#[test]
fn a_run_that_was_interrupted_says_how_it_goes_on_and_is_not_swept_away() {
    let world = world(vec![Reaction::silent(), say("Here I am.")]);
    let child = world.start(1);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = world.scene.ended(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let way_on = format!("convoke runs resume {}", world.id());
    assert!(ran.stderr.contains(&way_on), "{ran:?}");
    let swept = world.scene.run(&["runs", "gc", "--keep", "0"]);
    assert_eq!(swept.code, Some(0), "{swept:?}");
    let listed = world.scene.stdout(&["runs", "list", "--status", "interrupted"]);
    assert!(listed.contains(&world.id()), "{listed}");
    assert_eq!(world.resume(&["--last"]).stdout, "Here I am.\n");
}

#[test]
fn a_run_that_was_removed_while_it_worked_ends_and_says_so() {
    // The tool waits until the journal is gone.
    let arguments = json!({ "command": "while [ ! -e go ]; do sleep 0.01; done" });
    let world = World::new(vec![
        Reply::default().call("run_command", arguments).into(),
        Reply::text("Too late.").into(),
    ]);
    let mut command =
        world.scene.command(&["run", "--mode", "full", "--model", "openai-chat/m", "Go."]);
    let child = command.spawn().unwrap();
    world.threads.block_on(world.server.next_request());
    let runs = world.scene.root().join("home/.local/state/convoke/runs");
    fs::remove_dir_all(runs).unwrap();
    fs::write(world.scene.project().join("go"), "").unwrap();
    let ran = world.scene.ended(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(9), "{ran:?}");
    assert!(ran.stderr.contains("was removed while it worked"), "{ran:?}");
}
