//! Questions of a run: parked, answered from another terminal, in the terminal, with other arguments.

use std::fs;

use convoke_testkit::{Reaction, Reply, Wire};
use serde_json::{Value, json};

use crate::run::World;
use crate::screen::Session;
use crate::support::Ran;

fn write(text: &str) -> Reaction {
    let arguments = json!({ "path": "a.txt", "content": text });
    Reply::default().call("write_file", arguments).into()
}

fn touch() -> Reaction {
    Reply::default().call("run_command", json!({ "command": "touch made" })).into()
}

fn say(text: &str) -> Reaction {
    Reply::text(text).into()
}

/// Starts a run that nobody can be asked about and that waits for an answer; returns its id.
fn parked(world: &World) -> String {
    let ran = world.run(Wire::OpenAiChat, &["--on-ask", "park", "--output", "json", "Go."]);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&report["status"], &report["cause"]),
        (&json!("parked"), &json!("awaits_approval"))
    );
    report["run"].as_str().unwrap().to_owned()
}

fn resume(world: &World, id: &str) -> Ran {
    world.scene.run(&["runs", "resume", id])
}

#[test]
fn where_nobody_is_there_the_answer_is_no_at_once() {
    let world = World::new(vec![write("x"), say("Then not.")]);
    let ran = world.run(Wire::OpenAiChat, &["Go."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), "Then not.\n"), "{ran:?}");
    let told = String::from_utf8(world.server.requests()[1].body.clone()).unwrap();
    assert!(told.contains("nobody can be asked here"), "{told}");
}

#[test]
fn what_is_said_to_a_run_that_waits_is_heard_after_the_answer() {
    let world = World::new(vec![write("x"), say("Written.")]);
    let id = parked(&world);
    let ran = world.scene.run(&["runs", "resume", &id, "And then stop."]);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(ran.stderr.contains("what you say is heard after it"), "{ran:?}");
    assert_eq!(world.scene.run(&["runs", "approve", &id, "call"]).code, Some(0));
    assert_eq!(resume(&world, &id).code, Some(0));
    let heard = String::from_utf8(world.server.requests()[1].body.clone()).unwrap();
    assert!(heard.contains("And then stop."), "{heard}");
}

#[test]
fn a_parked_run_says_what_it_waits_for_and_goes_on_when_it_is_answered() {
    let world = World::new(vec![write("x"), say("Written.")]);
    let id = parked(&world);
    assert!(!world.scene.project().join("a.txt").exists());
    let shown = world.scene.stdout(&["runs", "show", &id]);
    for part in
        ["parked", "It waits for an answer:", "main  write_file", "--always would allow tool"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(world.scene.stdout(&["runs", "list"]).contains("parked (1)"));
    let unseen = world.scene.run(&["runs", "approve", &id]);
    assert_eq!(unseen.code, Some(2), "what is approved has to be named or seen: {unseen:?}");
    let told = world.scene.run(&["runs", "approve", &id, "call"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(
        told.stdout.starts_with("approved ") && told.stderr.contains("runs resume"),
        "{told:?}"
    );
    let ran = resume(&world, &id);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Written.\n"), "{ran:?}");
    assert_eq!(world.scene.read("a.txt"), "x");
    let replayed = world.scene.run(&["runs", "replay", &id]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let late = world.scene.run(&["runs", "approve", &id]);
    assert_eq!(late.code, Some(2), "{late:?}");
    assert!(late.stderr.contains("waits for no answer"), "{late:?}");
}

#[test]
fn a_refusal_from_elsewhere_reaches_the_model_with_its_message() {
    let world = World::new(vec![write("x"), say("As you like.")]);
    let id = parked(&world);
    let told = world.scene.run(&["runs", "deny", &id, "--message", "use b.txt"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    let ran = resume(&world, &id);
    assert_eq!(ran.stdout, "As you like.\n", "{ran:?}");
    let request = String::from_utf8(world.server.requests()[1].body.clone()).unwrap();
    assert!(request.contains("the user said no: use b.txt"), "{request}");
}

#[test]
fn a_parked_run_stays_parked_until_somebody_answers() {
    let world = World::new(vec![write("x"), say("Written.")]);
    let id = parked(&world);
    let again = resume(&world, &id);
    assert_eq!(again.code, Some(8), "it remembers what becomes of questions: {again:?}");
    let other = json!({ "path": "a.txt", "content": "other" }).to_string();
    for (words, part) in [
        (vec!["runs", "approve", &id, "no-such-item"], "no such question"),
        (vec!["runs", "approve", &id, "call", "--arguments", "{"], "no JSON"),
        (vec!["runs", "approve", &id, "call", "--arguments", "[]"], "no JSON object"),
        (vec!["runs", "approve", "nowhere"], "nowhere"),
    ] {
        let wrong = world.scene.run(&words);
        assert_eq!(wrong.code, Some(2), "{wrong:?}");
        assert!(wrong.stderr.contains(part), "{part}: {wrong:?}");
    }
    let told = world.scene.run(&["runs", "approve", &id, "call", "--arguments", &other]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(resume(&world, &id).stdout, "Written.\n");
    assert_eq!(world.scene.read("a.txt"), "other");
}

#[test]
fn what_is_saved_is_not_asked_about_in_any_run() {
    let world = World::new(vec![touch(), say("One."), touch(), say("Two.")]);
    let id = parked(&world);
    let told = world.scene.run(&["runs", "approve", &id, "call", "--save"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.contains("saved command `touch made`"), "{told:?}");
    assert_eq!(resume(&world, &id).stdout, "One.\n");
    fs::remove_file(world.scene.project().join("made")).unwrap();
    let ran = world.run(Wire::OpenAiChat, &["Again."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Two.\n"), "{ran:?}");
    assert!(world.scene.project().join("made").exists());
    let checked = world.scene.run(&["policy", "check", "--", "touch made"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("rules.yml:4"), "{checked:?}");
}

#[test]
fn an_answer_from_another_terminal_reaches_a_run_that_waits_at_its_own() {
    let world = World::new(vec![write("x"), say("Written.")]);
    let words = ["run", "--model", "openai-chat/m", "Go."];
    let Some(here) = Session::start(&world.scene, &words) else { return };
    here.wait_until("the question", |text| text.contains("or say what to do instead:"));
    let listed = world.scene.json(&["runs", "list", "--json", "--status", "waiting"]);
    assert_eq!(listed[0]["condition"], json!({ "state": "waiting" }));
    assert_eq!(listed[0]["openQuestions"], 1);
    let id = listed[0]["run"].as_str().unwrap().to_owned();
    assert!(world.scene.stdout(&["runs", "list"]).contains("waiting (1)"));
    assert!(world.scene.stdout(&["runs", "show", &id]).contains("waiting (1)\n"));
    let shown = world.scene.json(&["runs", "show", &id, "--json"]);
    assert_eq!((&shown["status"], &shown["openQuestions"]), (&json!("waiting"), &json!(1)));
    assert_eq!(shown["questions"][0]["toolName"], "write_file");
    let told = world.scene.run(&["runs", "approve", &id, "call"]);
    // It may have ended before that was said; either way there is nothing left to do.
    let is_heard = ["the run goes on\n", "the run went on and is completed; "];
    assert!(is_heard.iter().any(|said| told.stderr.contains(said)), "{told:?}");
    assert!(!told.stderr.contains("waits for an answer"), "{told:?}");
    here.wait_until("the answer", |text| {
        text.contains("no answer is needed any more") && text.contains("Written.")
    });
    assert_eq!(world.scene.read("a.txt"), "x");
}

#[test]
fn arguments_can_be_changed_before_a_call_runs() {
    let world = World::new(vec![write("x"), say("Written.")]);
    let scene = &world.scene;
    fs::write(scene.project().join("edit.sh"), "sed -i 's/\"x\"/\"y\"/' \"$1\"\n").unwrap();
    let editor = format!("sh {}", scene.project().join("edit.sh").display());
    let world = World { scene: world.scene.variable("EDITOR", &editor), ..world };
    let words = ["run", "--model", "openai-chat/m", "Go."];
    let Some(mut here) = Session::start(&world.scene, &words) else { return };
    here.wait_until("the question", |text| text.contains("or say what to do instead:"));
    here.type_in("e\r");
    // The dialog shows the diff of the new arguments, which is what runs.
    here.wait_until("the new diff", |text| {
        let asked = text.split_once("+y").map_or("", |(_, behind)| behind);
        asked.contains("or say what to do instead:")
    });
    here.type_in("y\r");
    here.wait_until("the answer", |text| text.contains("Written."));
    assert_eq!(world.scene.read("a.txt"), "y");
    let request = String::from_utf8(world.server.requests()[1].body.clone()).unwrap();
    assert!(request.contains("changed the arguments"), "{request}");
}

/// Starts a run with two questions; returns its id and theirs.
fn two_questions(world: &World) -> (String, Vec<String>) {
    let id = parked(world);
    let shown = world.scene.json(&["runs", "show", &id, "--json"]);
    let calls = shown["questions"].as_array().unwrap().iter();
    let calls: Vec<String> = calls.map(|open| open["call"].as_str().unwrap().to_owned()).collect();
    assert_eq!((calls.len(), &shown["openQuestions"]), (2, &json!(2)), "{shown}");
    (id, calls)
}

fn two_writes() -> Reaction {
    let write = |path: &str| json!({ "path": path, "content": "x" });
    Reply::default().call("write_file", write("a.txt")).call("write_file", write("b.txt")).into()
}

#[test]
fn several_questions_are_approved_by_their_names_and_never_unseen() {
    let world = World::new(vec![two_writes(), say("Written.")]);
    let (id, calls) = two_questions(&world);
    let words = |rest: &[&str]| {
        let rest = rest.iter().map(|word| (*word).to_owned());
        let words = ["runs", "approve", &id].map(str::to_owned);
        words.into_iter().chain(rest).collect::<Vec<String>>()
    };
    let run = |rest: &[&str]| {
        world.scene.run(&words(rest).iter().map(String::as_str).collect::<Vec<_>>())
    };
    for (rest, part) in [
        (&[][..], "several questions are meant"),
        (&["--all"], "what is approved has to be named"),
        (&["call"], "several questions begin like `call`"),
        (&[&calls[0], "nothing"], "there is no such question: `nothing`"),
        (&[&calls[0], &calls[1], "--arguments", "{}"], "name one question"),
        (&["--all", &calls[0]], "cannot be used with"),
    ] {
        let wrong = run(rest);
        assert_eq!(wrong.code, Some(2), "{rest:?}: {wrong:?}");
        assert!(wrong.stderr.contains(part), "{rest:?}: {wrong:?}");
    }
    assert_eq!(resume(&world, &id).code, Some(8), "nothing was answered");
    let told = run(&[&calls[1], &calls[0], &calls[1]]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(told.stdout.matches("approved ").count(), 2, "{told:?}");
    assert!(calls.iter().all(|call| told.stdout.contains(call.as_str())), "{told:?}");
    assert_eq!(resume(&world, &id).stdout, "Written.\n");
    assert_eq!([world.scene.read("a.txt"), world.scene.read("b.txt")], ["x", "x"]);
}

#[test]
fn all_questions_can_be_refused_at_once() {
    let world = World::new(vec![two_writes(), say("Then not.")]);
    let (id, _) = two_questions(&world);
    let told = world.scene.run(&["runs", "deny", &id, "--all", "--message", "not here"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(told.stdout.matches("refused ").count(), 2, "{told:?}");
    assert_eq!(resume(&world, &id).stdout, "Then not.\n");
    let request = String::from_utf8(world.server.requests()[1].body.clone()).unwrap();
    assert_eq!(request.matches("the user said no: not here").count(), 2, "{request}");
}

#[test]
fn at_a_terminal_each_question_is_shown_and_answered() {
    let world = World::new(vec![two_writes(), say("Written.")]);
    let (id, calls) = two_questions(&world);
    let words = ["runs", "approve", &id, "--all"];
    let Some(mut here) = Session::start(&world.scene, &words) else { return };
    // Either may have been asked first.
    let shown = here.wait_until("the first", |text| {
        calls.iter().any(|call| text.contains(call)) && text.contains("Approve it?")
    });
    let (first, second) = if shown.contains("a.txt") { ("y\r", "n\r") } else { ("n\r", "y\r") };
    here.type_in(first);
    here.wait_until("the second", |text| {
        calls.iter().all(|call| text.contains(call)) && text.matches("Approve it?").count() == 2
    });
    here.type_in(second);
    here.wait_until("what is left", |text| {
        text.contains("one more waits for an answer") && text.contains("approved ")
    });
    let (screen, code) = here.end();
    assert_eq!((code, screen.matches("approved ").count()), (Some(0), 1), "{screen}");
    assert_eq!(resume(&world, &id).code, Some(8), "the other is still asked about");
    assert!(world.scene.project().join("a.txt").exists());
    assert!(!world.scene.project().join("b.txt").exists());
}

/// Regression: a call that was named was approved without having been shown.
#[test]
fn at_a_terminal_what_is_named_is_shown_whole_before_it_is_approved() {
    let text = "line\n".repeat(299) + "the end\n";
    let command = format!("echo {}; touch made", "x".repeat(400));
    let run = Reply::default().call("run_command", json!({ "command": command }));
    for (wanted, end) in [(write(&text), "+the end"), (run.into(), "; touch made")] {
        let world = World::new(vec![wanted, say("Done.")]);
        let world = World { scene: world.scene.variable("PAGER", "cat"), ..world };
        let id = parked(&world);
        for (answer, code) in [("n\r", 2), ("y\r", 0)] {
            let words = ["runs", "approve", &id, "call"];
            let Some(mut here) = Session::start(&world.scene, &words) else { return };
            let shown = here.wait_for("Approve it? [y/N]");
            assert!(shown.contains(end), "{shown}");
            here.type_in(answer);
            let (screen, ended) = here.end();
            assert_eq!(ended, Some(code), "{screen}");
        }
    }
}

#[test]
fn what_is_cut_off_of_a_question_is_told_and_shown_on_demand() {
    let command = format!("echo {}; touch made", "x".repeat(400));
    let run = Reply::default().call("run_command", json!({ "command": command }));
    let world = World::new(vec![run.into()]);
    let id = parked(&world);
    let waits = |words: &[&str]| {
        let shown = world.scene.run(&[&["runs", "show", &id], words].concat()).stdout;
        shown.split_once("It waits for an answer:").unwrap().1.to_owned()
    };
    let (usual, full) = (waits(&[]), waits(&["--full"]));
    assert!(usual.contains(" more characters\n") && !usual.contains("x; touch"), "{usual}");
    assert!(full.contains("x; touch made\"\n"), "{full}");
}

/// Regression: a run that had its answer was said to wait for one.
#[test]
fn a_run_that_cannot_use_its_answer_yet_asks_for_no_other() {
    let call = json!({ "name": "mcp__self__read_file", "args": { "path": "a.txt" } });
    let search = Reply::default().call("tool_search", json!({ "query": "read_file" }));
    let world = World::new(vec![search.into(), Reply::default().call("use_tool", call).into()]);
    let convoke = env!("CARGO_BIN_EXE_convoke");
    let add = ["mcp", "add", "self", "--", convoke, "mcp", "serve"];
    assert_eq!(world.scene.run(&add).code, Some(0));
    let id = parked(&world);
    assert_eq!(world.scene.run(&["mcp", "disable", "self"]).code, Some(0));
    assert_eq!(world.scene.run(&["runs", "approve", &id, "call"]).code, Some(0));
    let ran = resume(&world, &id);
    assert_eq!(ran.code, Some(8), "{ran:?}");
    assert!(ran.stderr.contains(&format!("`convoke runs resume {id}` goes on")), "{ran:?}");
    assert!(!ran.stderr.contains("runs approve"), "{ran:?}");
}

#[test]
fn what_was_typed_before_the_question_approves_nothing() {
    let world = World::new(vec![write("x"), say("Written.")]);
    let id = parked(&world);
    let words = ["runs", "approve", &id];
    let Some(mut here) = Session::start_after(&world.scene, "y\r", &words) else { return };
    here.wait_for("Approve it? [y/N]");
    here.type_in("n\r");
    let (screen, code) = here.end();
    assert_eq!(code, Some(2), "{screen}");
    assert!(screen.contains("nothing was approved"), "{screen}");
    assert_eq!(resume(&world, &id).code, Some(8), "it is still asked about");
}

#[test]
fn what_cannot_be_kept_for_all_runs_is_not_approved_either() {
    let world = World::new(vec![touch(), say("One.")]);
    let world = World { scene: world.scene.user("model:\n  retries: 2\n"), ..world };
    let id = parked(&world);
    let own = world.scene.root().join("home/.config/convoke/convoke.yml");
    // Rules are not saved beside a file that was named.
    let words = ["--config", own.to_str().unwrap(), "runs", "approve", &id, "call", "--save"];
    let told = world.scene.run(&words);
    assert_eq!((told.code, told.stdout.as_str()), (Some(2), ""), "{told:?}");
    assert!(told.stderr.contains("there is no place to save rules"), "{told:?}");
    assert_eq!(resume(&world, &id).code, Some(8), "nothing was answered");
    let other = ["runs", "approve", &id, "call", "--always", "--arguments", "{}"];
    assert_eq!(world.scene.run(&other).code, Some(2), "no rule was proposed for other arguments");
}

#[test]
fn a_hook_that_asks_has_a_person_asked_and_its_reason_shown() {
    let world = World::new(vec![write("x"), say("Written.")]);
    let hook = r#"['sh', '-c', 'echo ''{"decision": "ask", "reason": "it is Friday"}''']"#;
    let hooks =
        format!("hooks:\n  - {{on: [before_tool], guard: true, name: g, command: {hook}}}\n");
    let world = World { scene: world.scene.user(&hooks), ..world };
    let words = ["run", "--mode", "full", "--model", "openai-chat/m", "Go."];
    let Some(mut here) = Session::start(&world.scene, &words) else { return };
    here.wait_until("the question", |text| text.contains("or say what to do instead:"));
    here.wait_until("its reason", |text| text.contains("the hook `g` asks: it is Friday"));
    here.type_in("y\r");
    here.wait_until("the answer", |text| text.contains("Written."));
    assert_eq!(world.scene.read("a.txt"), "x");
}
