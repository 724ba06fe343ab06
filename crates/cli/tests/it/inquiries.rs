//! What a server asks a person in the middle of a call: in the terminal, from another one, and where nobody is.

use convoke_testkit::{Reaction, Reply};
use serde_json::json;

use crate::run::World;
use crate::screen::Session;
use crate::support::Scene;
use crate::waiting::python;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/asks.py");

fn configured(scene: Scene) -> Option<Scene> {
    let python = python()?;
    Some(scene.user(&format!(
        "tools:\n  mcpServers: [{{name: asks, command: {python}, args: ['{FIXTURE}']}}]\n\
         policy:\n  kinds: {{other: allow}}\n"
    )))
}

/// A run that calls a tool of the server and then says that it is done.
fn world(tool: &str) -> Option<World> {
    let name = format!("mcp__asks__{tool}");
    let world = World::new(vec![
        Reply::default().call("tool_search", json!({ "query": tool })).into(),
        Reply::default().call("use_tool", json!({ "name": name, "args": {} })).into(),
        Reaction::from(Reply::text("Done.")),
    ]);
    let World { threads, server, scene } = world;
    Some(World { threads, server, scene: configured(scene)? })
}

/// What the model was told in the end.
fn told(world: &World) -> String {
    let body = world.server.requests().last().unwrap().body.clone();
    String::from_utf8(body).unwrap().replace('\\', "")
}

const RUN: [&str; 4] = ["run", "--model", "openai-chat/m", "Go."];

#[test]
fn a_yes_to_calls_is_no_answer_to_a_server() {
    let Some(scene) = configured(Scene::new()) else { return };
    for tool in ["asks.deploy", "asks.visit"] {
        let ran = scene.run(&["tools", "call", tool, "--yes"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.stdout, "{\"action\": \"cancel\"}\n", "{ran:?}");
    }
}

#[test]
fn a_form_is_filled_in_where_a_tool_is_called() {
    let Some(scene) = configured(Scene::new()) else { return };
    let Some(mut here) = Session::start(&scene, &["tools", "call", "asks.greet"]) else { return };
    here.wait_until("the question", |text| {
        text.contains("What is your name?") && text.ends_with("\nname:")
    });
    here.type_in("Ada\r");
    here.wait_for("level [3]:");
    here.type_in("9\r");
    here.wait_for("greater than the maximum of 5");
    here.type_in("\r");
    here.wait_for("command [rm -rf /]:");
    here.type_in("ls\r");
    here.wait_until("all of it", |text| {
        text.contains("  name: Ada\n  level: 3\n  command: ls\nSend it?")
    });
    here.type_in("y\r");
    let (text, code) = here.end();
    assert_eq!(code, Some(0), "{text}");
    let sent = r#"{"action": "accept", "content": {"command": "ls", "level": 3, "name": "Ada"}}"#;
    assert!(text.replace('\n', "").contains(sent), "{text}");
}

/// Regression: it was seen while it was typed, and again in what the server answered.
#[test]
fn a_short_password_is_seen_nowhere() {
    let Some(scene) = configured(Scene::new()) else { return };
    let Some(mut here) = Session::start(&scene, &["tools", "call", "asks.unlock"]) else { return };
    here.wait_until("the question", |text| {
        text.contains("May I come in?") && text.ends_with("\npassword:")
    });
    here.type_in("0815\r");
    here.wait_for("[c]hange:");
    here.type_in("yes\r");
    let (text, code) = here.end();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("[secret password]") && !text.contains("0815"), "{text}");
    assert!(text.contains("[c]hange: yes"), "what is no secret is seen again: {text}");
}

/// Regression: where a line was begun before the question, the password was seen while it was typed, and the terminal
/// was left as nobody can use it.
#[test]
fn a_password_is_not_seen_in_a_chat_in_which_a_line_was_begun() {
    let wait = json!({ "command": "until [ -e go ]; do :; done" });
    let unlock = json!({ "name": "mcp__asks__unlock", "args": {} });
    let World { threads, server, scene } = World::new(vec![
        Reply::default().call("run_command", wait).into(),
        Reply::default().call("tool_search", json!({ "query": "unlock" })).into(),
        Reply::default().call("use_tool", unlock).into(),
        Reaction::from(Reply::text("Done.")),
    ]);
    let Some(scene) = configured(scene) else { return };
    let world = World { threads, server, scene };
    let words = ["chat", "--model", "openai-chat/m", "--mode", "full"];
    let Some(mut here) = Session::start(&world.scene, &words) else { return };
    here.wait_for_prompt();
    here.type_in("Go.\r");
    here.wait_until("the place to type", |text| text.ends_with("s\n›"));
    here.type_in("a draft");
    here.wait_for("› a draft");
    std::fs::write(world.scene.project().join("go"), "").unwrap();
    here.wait_until("the question", |text| text.ends_with("\npassword:"));
    here.wait_until_unseen();
    here.type_in("0815\r");
    here.wait_until("all of it", |text| text.ends_with("[c]hange:"));
    assert!(here.is_as_before(), "what is no secret is seen, and whole lines are awaited");
    here.type_in("yes\r");
    let text =
        here.wait_until("the draft", |text| text.contains("Done.") && text.ends_with("› a draft"));
    assert!(text.contains("[c]hange: yes") && !text.contains("0815"), "{text}");
    assert!(told(&world).contains("[secret password]"), "{}", told(&world));
    here.type_in("\u{15}/quit\r");
    let (text, code) = here.end();
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn ctrl_c_declines_and_the_call_goes_on() {
    let Some(scene) = configured(Scene::new()) else { return };
    let Some(mut here) = Session::start(&scene, &["tools", "call", "asks.greet"]) else { return };
    here.wait_until("the question", |text| text.ends_with("\nname:"));
    here.type_in("\u{3}");
    let (text, code) = here.end();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("{\"action\": \"decline\"}"), "{text}");
}

#[test]
fn a_run_asks_field_by_field_and_ctrl_c_declines_only_the_question() {
    let Some(world) = world("greet") else { return };
    let Some(mut here) = Session::start(&world.scene, &RUN) else { return };
    here.wait_until("the question", |text| {
        text.contains("mcp:asks asks, during mcp__asks__greet:") && text.ends_with("\nname:")
    });
    here.type_in("n\r");
    here.wait_for("level [3]:");
    here.type_in("\r");
    here.wait_for("command [rm -rf /]:");
    here.type_in("\u{3}");
    let (text, code) = here.end();
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("(declined; Ctrl-C again stops the run)") && text.contains("Done."),
        "{text}"
    );
    assert!(told(&world).contains(r#"{"action": "decline"}"#), "{}", told(&world));
}

/// Who declined one question after the other had no way out.
#[test]
fn a_second_ctrl_c_stops_a_run_whose_server_asks_and_asks() {
    let Some(world) = world("nag") else { return };
    let Some(mut here) = Session::start(&world.scene, &RUN) else { return };
    here.wait_until("the question", |text| text.ends_with("\nname:"));
    here.type_in("\u{3}");
    here.wait_until("the next one", |text| {
        text.contains("(declined; Ctrl-C again stops the run)") && text.ends_with("\nname:")
    });
    here.type_in("\u{3}");
    let (text, code) = here.end();
    assert_eq!(code, Some(130), "{text}");
}

#[test]
fn a_page_is_shown_with_its_host() {
    let Some(world) = world("visit") else { return };
    let Some(mut here) = Session::start(&world.scene, &RUN) else { return };
    let text = here.wait_for("Have you opened it? [y]es, [n]o:");
    for part in ["https://login.example/x?y=1", "It is a page of login.example", "Please sign in."]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    here.type_in("y\r");
    here.wait_for("Done.");
    assert!(told(&world).contains(r#"{"action": "accept"}"#), "{}", told(&world));
}

#[test]
fn a_form_is_shown_and_filled_in_from_another_terminal() {
    let Some(world) = world("greet") else { return };
    let Some(here) = Session::start(&world.scene, &RUN) else { return };
    here.wait_until("the question", |text| text.ends_with("\nname:"));
    let scene = &world.scene;
    let listed = scene.json(&["runs", "list", "--json", "--status", "waiting"]);
    let id = listed[0]["run"].as_str().unwrap().to_owned();
    let shown = scene.stdout(&["runs", "show", &id]);
    for part in [
        "mcp:asks asks:",
        "What is your name?",
        "name (text; required): as on the badge",
        "level (a whole number from 1 to 5; required) [3]",
        "--arguments JSON",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let questions = scene.json(&["runs", "show", &id, "--json"]);
    assert_eq!(questions["questions"][0]["inquiry"]["wanted"]["mode"], "form");
    for (arguments, part) in [
        (None, "\"name\" is a required property"),
        (Some(r#"{"nmae": "Ada"}"#), "nmae"),
        (Some(r#"{"name": "Ada", "level": 9}"#), "level: 9 is greater"),
    ] {
        let mut words = vec!["runs", "approve", &id, "call"];
        words.extend(arguments.into_iter().flat_map(|arguments| ["--arguments", arguments]));
        let wrong = scene.run(&words);
        assert_eq!(wrong.code, Some(2), "{wrong:?}");
        assert!(
            wrong.stderr.contains(part) && wrong.stderr.contains("as on the badge"),
            "{wrong:?}"
        );
    }
    let nobody = scene.run(&["runs", "approve", &id]);
    assert_eq!((nobody.code, nobody.stdout.as_str()), (Some(2), ""), "{nobody:?}");
    assert!(shown.contains("  To answer: convoke runs approve"), "{shown}");
    assert_eq!(shown.matches("runs approve").count(), 1, "nobody can be asked on a pipe: {shown}");
    // One question is open, and what is given fits no other.
    let told_it = scene.run(&["runs", "approve", &id, "--arguments", r#"{"name": "Ada"}"#]);
    assert_eq!(told_it.code, Some(0), "{told_it:?}");
    here.wait_until("the answer", |text| {
        text.contains("no answer is needed any more") && text.contains("Done.")
    });
    let sent = r#""content": {"command": "rm -rf /", "level": 3, "name": "Ada"}"#;
    assert!(told(&world).contains(sent), "{}", told(&world));
}

/// Regression: a password that was typed into another terminal was seen there, and Ctrl-C was said to decline.
#[test]
fn a_password_is_not_seen_in_another_terminal_either() {
    let Some(world) = world("unlock") else { return };
    let Some(here) = Session::start(&world.scene, &RUN) else { return };
    here.wait_until("the question", |text| text.ends_with("\npassword:"));
    let listed = world.scene.json(&["runs", "list", "--json", "--status", "waiting"]);
    let id = listed[0]["run"].as_str().unwrap().to_owned();
    let there = || {
        let there = Session::start(&world.scene, &["runs", "approve", &id])?;
        there.wait_until("the question there", |text| {
            text.contains("Ctrl-C and Ctrl-D leave the question") && text.ends_with("\npassword:")
        });
        there.wait_until_unseen();
        Some(there)
    };
    for (key, code) in [("08\u{3}", 130), ("\u{4}", 2)] {
        let Some(mut there) = there() else { return };
        there.type_in(key);
        there.wait_until_as_before();
        let (text, ended) = there.end();
        assert!(ended == Some(code) && !text.contains("08"), "{ended:?}: {text}");
    }
    let Some(mut there) = there() else { return };
    there.type_in("0815\r");
    there.wait_until("all of it", |text| text.ends_with("[c]hange:"));
    assert!(there.is_as_before());
    there.type_in("y\r");
    let (text, code) = there.end();
    assert!(code == Some(0) && !text.contains("0815"), "{code:?}: {text}");
    let (text, code) = here.end();
    assert!(code == Some(0) && text.contains("Done."), "{text}");
    assert!(told(&world).contains("[secret password]"), "{}", told(&world));
}

/// What a call asks in the middle of its work cannot wait for another day.
#[test]
fn a_run_that_parks_other_questions_goes_on_without_an_answer_to_this_one() {
    let Some(world) = world("deploy") else { return };
    let flags = ["run", "--model", "openai-chat/m", "--on-ask", "park", "Go."];
    let ran = world.scene.run(&flags);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"), "{ran:?}");
    assert!(ran.stderr.contains("told nothing to mcp:asks: nobody can be asked here"), "{ran:?}");
    assert!(told(&world).contains(r#"{"action": "cancel"}"#), "{}", told(&world));
}
