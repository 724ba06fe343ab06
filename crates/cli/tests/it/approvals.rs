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
    let id = world.scene.json(&["runs", "list", "--json"])[0]["run"].as_str().unwrap().to_owned();
    let told = world.scene.run(&["runs", "approve", &id, "call"]);
    assert!(told.stderr.contains("the run goes on"), "{told:?}");
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
    here.wait_until("what came of it", |text| {
        text.contains("it would run with:") && text.contains("\"y\"")
    });
    here.type_in("y\r");
    here.wait_until("the answer", |text| text.contains("Written."));
    assert_eq!(world.scene.read("a.txt"), "y");
    let request = String::from_utf8(world.server.requests()[1].body.clone()).unwrap();
    assert!(request.contains("changed the arguments"), "{request}");
}
