//! Coming back to runs: which run is meant, in which directory and how freely it goes on.

use std::fs;
use std::path::PathBuf;

use convoke_testkit::{Reaction, Reply, Wire};
use serde_json::{Value, json};

use crate::pty::{Attached, Terminal};
use crate::run::World;
use crate::support::Ran;

fn say(text: &str) -> Reaction {
    Reply::text(text).into()
}

fn command(line: &str) -> Reaction {
    Reply::default().call("run_command", json!({ "command": line })).into()
}

impl World {
    /// Makes another directory beside the project.
    fn beside(&self, name: &str) -> PathBuf {
        let path = self.scene.root().join("home").join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn at(&self, directory: &PathBuf, words: &[&str]) -> Ran {
        let mut command = self.scene.command(words);
        self.scene.ended(&command.current_dir(directory).output().unwrap())
    }

    fn runs(&self) -> Vec<Value> {
        let listed = self.scene.json(&["runs", "list", "--json"]);
        listed.as_array().unwrap().clone()
    }

    /// What the model was last told.
    fn heard_last(&self) -> String {
        let request = self.server.requests().pop().unwrap();
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].as_str().unwrap_or_default().to_owned()
    }
}

fn id(run: &Value) -> String {
    run["run"].as_str().unwrap().to_owned()
}

#[test]
fn last_means_the_newest_run_of_this_directory() {
    let world = World::new(vec![say("A."), say("B."), say("A again."), say("A once more.")]);
    let (other, empty) = (world.beside("other"), world.beside("empty"));
    assert_eq!(world.run(Wire::OpenAiChat, &["In A."]).code, Some(0));
    let ran = world.at(&other, &["run", "--model", "openai-chat/some-model", "In B."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");

    let ran = world.scene.run(&["runs", "resume", "--last", "Again."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "A again.\n"), "{ran:?}");
    let ran = world.at(&other, &["runs", "show", "--last"]);
    assert!(ran.stdout.contains("In B."), "{ran:?}");
    for command in ["show", "export", "replay", "audit", "diff", "apply", "rm", "resume", "fork"] {
        let ran = world.at(&empty, &["runs", command, "--last"]);
        assert_eq!(ran.code, Some(2), "{command}: {ran:?}");
        assert!(ran.stderr.contains("no run works in `[root]/home/empty`"), "{command}: {ran:?}");
        assert!(ran.stderr.contains("(elsewhere: 2 runs)"), "{command}: {ran:?}");
        assert!(ran.stderr.contains("`convoke runs list`"), "{command}: {ran:?}");
    }
    let ran = world.at(&empty, &["runs", "resume"]);
    assert!(ran.stderr.contains("no run works in"), "{ran:?}");
    let ran = world.at(&empty, &["chat", "--last"]);
    assert!(ran.stderr.contains("no run works in"), "{ran:?}");
    let ran = world.at(&empty, &["runs", "show", "--last", "--all"]);
    assert!(ran.stdout.contains("In A."), "the one that was last worked on: {ran:?}");
    assert_eq!(world.requests(), 3);

    // The same directory by another name.
    let link = world.scene.root().join("home/link");
    std::os::unix::fs::symlink(world.scene.project(), &link).unwrap();
    let ran = world.at(&link, &["runs", "resume", "--last", "More."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "A once more.\n"), "{ran:?}");
}

#[test]
fn resume_of_a_run_of_another_directory_is_refused_with_the_command_that_does_it() {
    let world = World::new(vec![say("A."), say("There."), say("Here."), say("Still here.")]);
    let other = world.beside("other one");
    assert_eq!(world.run(Wire::OpenAiChat, &["In A."]).code, Some(0));
    let run = id(&world.runs()[0]);
    let project = world.scene.project();
    for words in [
        &["runs", "resume", &run, "More."][..],
        &["runs", "resume", "--last", "--all", "More."],
        &["runs", "fork", &run, "More."],
        &["chat", "--resume", &run],
    ] {
        let ran = world.at(&other, words);
        assert_eq!((ran.code, world.requests()), (Some(2), 1), "{ran:?}");
        let named = "works in `[root]/home/project`, and this is `[root]/home/other one`";
        assert!(ran.stderr.contains(named), "{ran:?}");
        assert!(ran.stderr.contains("`convoke --cwd [root]/home/project "), "{ran:?}");
    }
    assert_eq!(world.runs().len(), 1, "no fork was made");

    let project = project.to_str().unwrap();
    let ran = world.at(&other, &["--cwd", project, "runs", "resume", &run, "More."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "There.\n"), "{ran:?}");
    // What moves a run says so, and it belongs to its new directory then.
    let ran = world.at(&other, &["runs", "resume", &run, "More.", "--here"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Here.\n"), "{ran:?}");
    let ran = world.at(&other, &["runs", "resume", "--last", "More."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Still here.\n"), "{ran:?}");
    let ran = world.scene.run(&["runs", "resume", &run, "More."]);
    assert!(ran.stderr.contains("`convoke --cwd '[root]/home/other one' runs"), "{ran:?}");
}

#[test]
fn resume_in_a_freer_mode_is_refused_with_the_command_that_does_it() {
    let world = World::new(vec![say("Free."), command("touch made"), say("Done.")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["--mode", "full", "Go."]).code, Some(0));
    let run = id(&world.runs()[0]);
    for words in [&["runs", "resume", "--last", "Again."][..], &["runs", "fork", &run, "Again."]] {
        let ran = world.scene.run(words);
        assert_eq!((ran.code, world.requests()), (Some(2), 1), "{ran:?}");
        assert!(ran.stderr.contains("acts in mode `full`, which is freer"), "{ran:?}");
        assert!(ran.stderr.contains(" --mode full` resumes it so"), "{ran:?}");
    }
    assert!(world.scene.run(&["chat", "--last"]).stderr.contains("acts in mode `full`"));
    let ran = world.scene.run(&["runs", "resume", "--last", "Again.", "--mode", "full"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(world.scene.project().join("made").exists());
}

#[test]
fn resume_in_another_directory_or_mode_is_asked_about_at_a_terminal() {
    let world = World::new(vec![say("Free."), say("Resumed.")]);
    let other = world.beside("other");
    assert_eq!(world.run(Wire::OpenAiChat, &["--mode", "full", "Go."]).code, Some(0));
    let run = id(&world.runs()[0]);
    let other = other.to_str().unwrap();
    for (answer, code) in [("n\r", 2), ("y\r", 0)] {
        let words = ["--cwd", other, "runs", "resume", &run, "Again."];
        let mut terminal = Terminal::start(&world.scene, 200, Attached::All, &words);
        let shown = terminal.wait_for("[y/N] ");
        assert!(shown.contains("/home/project`") && shown.contains("mode `full`"), "{shown}");
        terminal.type_in(answer);
        let ended = terminal.end();
        assert_eq!(ended.code, Some(code), "{ended:?}");
    }
    assert_eq!(world.requests(), 2);
    assert_eq!(world.heard_last(), "Again.");
}

/// A fork that gets a message does not make the calls of the original, and asks nothing without the message.
#[test]
fn fork_with_a_message_at_any_event_makes_no_old_call() {
    let script = vec![command("echo x >> made"), say("Done.")];
    let events = {
        let world = World::new(script);
        assert_eq!(world.run(Wire::OpenAiChat, &["--mode", "full", "Go."]).code, Some(0));
        world.runs()[0]["events"].as_u64().unwrap()
    };
    let answers = (0..events).map(|_| say("Otherwise."));
    let world = World::new(
        [command("echo x >> made"), say("Done.")].into_iter().chain(answers).collect::<Vec<_>>(),
    );
    assert_eq!(world.run(Wire::OpenAiChat, &["--mode", "full", "Go."]).code, Some(0));
    let run = id(&world.runs()[0]);
    for at in 1..=events {
        let at = at.to_string();
        let words = ["runs", "fork", &run, "--at", &at, "--mode", "full", "Do it otherwise."];
        let ran = world.scene.run(&words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Otherwise.\n"), "at {at}: {ran:?}");
        assert_eq!(world.heard_last(), "Do it otherwise.", "at {at}");
        assert_eq!(world.scene.read("made"), "x\n", "at {at}");
    }
    assert_eq!(world.requests() as u64, 2 + events, "one request for each fork");
}

#[test]
fn resume_of_a_run_that_is_done_prints_its_answer_and_exits_with_its_code() {
    let world = World::new(vec![say("The answer.")]);
    let first = world.run(Wire::OpenAiChat, &["Go."]);
    assert_eq!(first.code, Some(0));
    for words in [&["runs", "resume", "--last"][..], &["runs", "resume"]] {
        let ran = world.scene.run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "The answer.\n"), "{ran:?}");
        assert!(ran.stderr.contains("was done before"), "{ran:?}");
    }
    let report = world.scene.json(&["runs", "resume", "--last", "--output", "json"]);
    assert_eq!(report["answer"], "The answer.");
    assert_eq!(report["run"], id(&world.runs()[0]));
    let elsewhere = world.beside("other");
    let ran = world.at(&elsewhere, &["runs", "resume", &id(&world.runs()[0])]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "The answer.\n"), "{ran:?}");
    assert_eq!(world.requests(), 1);
}

#[test]
fn run_that_was_lost_before_it_started_is_told_as_such_and_collected() {
    let world = World::new(vec![say("Never asked for.")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["Go."]).code, Some(0));
    let run = id(&world.runs()[0]);
    let state = world.scene.root().join("home/.local/state/convoke");
    let journal = state.join("runs").join(&run).join("journal.jsonl");
    let header = fs::read_to_string(&journal).unwrap().lines().next().unwrap().to_owned();
    fs::remove_file(state.join("heads").join(&run)).unwrap();
    for left in [format!("{header}\n"), String::new(), header[..20].to_owned()] {
        fs::write(&journal, &left).unwrap();
        let listed = world.runs().remove(0);
        assert_eq!(listed["status"], "never_started", "{left:?}");
        assert!(world.scene.stdout(&["runs", "list"]).contains("never started"), "{left:?}");
        let ran = world.scene.run(&["runs", "resume", &run]);
        assert_eq!(ran.code, Some(9), "{ran:?}");
        assert!(ran.stderr.contains("never started"), "{ran:?}");
        let ran = world.scene.run(&["runs", "resume", "--last"]);
        assert_eq!(ran.code, Some(2), "it is no run to come back to: {ran:?}");
    }
    let ran = world.scene.run(&["runs", "gc", "--keep", "0"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.runs(), Vec::<Value>::new());
}

#[test]
fn one_of_two_answers_at_the_same_time_counts_and_the_other_is_told() {
    for _ in 0..6 {
        let world = World::new(vec![command("touch made"), say("Done."), say("Done.")]);
        assert_eq!(world.run(Wire::OpenAiChat, &["--on-ask", "park", "Go."]).code, Some(8));
        let run = id(&world.runs()[0]);
        let shown = world.scene.json(&["runs", "show", &run, "--json"]);
        let call = shown["questions"][0]["call"].as_str().unwrap().to_owned();
        let item = format!("{run}/{call}");
        let answers = ["approve", "deny"].map(|verb| {
            // The run of a call may be named, though no other call has its id.
            world.scene.command(&["runs", verb, &run, &item]).spawn().unwrap()
        });
        let [approved, denied] =
            answers.map(|answer| world.scene.ended(&answer.wait_with_output().unwrap()));
        assert_ne!(approved.code == Some(0), denied.code == Some(0), "{approved:?} {denied:?}");
        let late = if approved.code == Some(0) { &denied } else { &approved };
        assert!(late.stderr.contains("answer"), "{late:?}");
        let ran = world.scene.run(&["runs", "resume", &run]);
        let made = world.scene.project().join("made").exists();
        assert_eq!(made, approved.code == Some(0), "{approved:?} {denied:?} {ran:?}");
    }
}

#[test]
fn audit_tells_of_a_damaged_head_and_of_bytes_after_the_end() {
    let world = World::new(vec![say("Done.")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["Go."]).code, Some(0));
    let run = id(&world.runs()[0]);
    let state = world.scene.root().join("home/.local/state/convoke");
    let (head, journal) =
        (state.join("heads").join(&run), state.join("runs").join(&run).join("journal.jsonl"));
    assert_eq!(world.scene.run(&["runs", "audit", &run]).code, Some(0));
    let good = fs::read(&head).unwrap();
    fs::write(&head, [&good[..30], b"?", &good[31..]].concat()).unwrap();
    let ran = world.scene.run(&["runs", "audit", &run]);
    assert_eq!(ran.code, Some(9), "{ran:?}");
    assert!(ran.stderr.contains("is damaged") && !ran.stderr.contains("no head"), "{ran:?}");
    fs::write(&head, good).unwrap();
    let whole = fs::read(&journal).unwrap();
    fs::write(&journal, [&whole[..], b"junk without an end"].concat()).unwrap();
    let ran = world.scene.run(&["runs", "audit", &run]);
    assert_eq!(ran.code, Some(9), "{ran:?}");
    assert!(ran.stderr.contains("19 bytes stand after the last line"), "{ran:?}");
}

#[test]
fn lost_text_does_not_hide_later_events_and_does_not_stop_a_resume() {
    let read: Reaction = Reply::default().call("read_file", json!({ "path": "long.txt" })).into();
    let world = World::new(vec![read, say("Seen."), say("More.")]);
    fs::write(world.scene.project().join("long.txt"), "long line of text\n".repeat(5_000)).unwrap();
    assert_eq!(world.run(Wire::OpenAiChat, &["Go."]).code, Some(0));
    let run = id(&world.runs()[0]);
    let blobs = world.scene.root().join("home/.local/state/convoke/runs").join(&run).join("blobs");
    let mut lost = 0;
    for blob in fs::read_dir(&blobs).unwrap() {
        let blob = blob.unwrap().path();
        if fs::read_to_string(&blob).unwrap().contains("long line") {
            fs::remove_file(blob).unwrap();
            lost += 1;
        }
    }
    assert!(lost > 0);
    for words in [&["show", &run][..], &["export", &run], &["show", &run, "--json"]] {
        let ran = world.scene.run(&[&["runs"], words].concat());
        assert_eq!(ran.code, Some(9), "{ran:?}");
        assert!(ran.stdout.contains("Seen."), "what came later is there: {ran:?}");
        assert!(ran.stderr.contains("is lost") && ran.stderr.contains("missing"), "{ran:?}");
    }
    let ran = world.scene.run(&["runs", "replay", &run]);
    assert_eq!(ran.code, Some(9), "{ran:?}");
    assert!(ran.stdout.contains("the same"), "as far as it is intact: {ran:?}");
    assert_eq!(world.scene.run(&["runs", "audit", &run]).code, Some(9));
    let ran = world.scene.run(&["runs", "resume", &run, "Go on."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "More.\n"), "{ran:?}");
    assert!(ran.stderr.contains("the run goes on without that text"), "{ran:?}");
    let request = world.server.requests().pop().unwrap();
    assert!(String::from_utf8_lossy(&request.body).contains("[lost: "));
}
