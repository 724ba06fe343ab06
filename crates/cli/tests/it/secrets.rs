//! Secrets stay where they are: nobody sees one, and nothing destroys one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use convoke::journal::Item;
use convoke_core::Timestamp;
use convoke_testkit::{Reaction, Reply, Wire};
use serde_json::json;

use crate::recorded::{BEGIN, store};
use crate::run::World;
use crate::screen::Session;
use crate::support::Ran;

/// Nobody told anybody about it; it has the shape of one.
const TOKEN: &str = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";
/// The value of variables.
const KEY: &str = "sk-secret-word";
/// A setting that is marked as secret.
const SETTING: &str = "cx-0123-4567-89ab";
const PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n\
    -----END PRIVATE KEY-----\n";

fn say(text: &str) -> Reaction {
    Reply::text(text).into()
}

fn call(tool: &str, arguments: serde_json::Value) -> Reaction {
    Reply::default().call(tool, arguments).into()
}

fn world(script: Vec<Reaction>) -> World {
    let mut world = World::new(script);
    world.scene = world.scene.user(&format!("tools:\n  webSearch:\n    apiKey: {SETTING}\n"));
    let leak = format!("{TOKEN}\n{KEY}\n{SETTING}\nhttps://me:hunter2-and-4@host/x\n{PRIVATE_KEY}");
    fs::write(world.scene.project().join("leak.txt"), leak).unwrap();
    world
}

fn state(world: &World) -> PathBuf {
    world.scene.root().join("home/.local/state/convoke")
}

#[track_caller]
fn assert_hidden(place: &str, text: &str) {
    for secret in [TOKEN, KEY, SETTING, "hunter2-and-4", "VTm50DFtMDoQikTmiCqirVv9mWG9qfSnF"] {
        assert!(!text.contains(secret), "{place} shows {secret}: {text}");
    }
}

fn everything_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// A model that says secrets, reads secrets, and calls a tool that complains about one.
fn indiscreet() -> Vec<Reaction> {
    vec![
        Reaction::from(
            Reply::text(format!("I remember {TOKEN} and {KEY}."))
                .call("read_file", json!({ "path": "leak.txt" })),
        )
        .in_chunks_of(7),
        call(
            "edit_file",
            json!({ "path": format!("no-{TOKEN}"), "old_string": "a", "new_string": "b" }),
        ),
        say(&format!("They are {TOKEN}, {SETTING} and {KEY}.")).in_chunks_of(5),
    ]
}

#[test]
fn a_secret_is_hidden_wherever_anybody_looks() {
    for output in ["text", "json", "stream-json"] {
        let world = world(indiscreet());
        let prompt = format!("Is it {TOKEN}?");
        let words = ["--mode", "auto_edit", "--output", output, &prompt];
        let ran = world.run(Wire::OpenAiChat, &words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_hidden(output, &ran.shown());
        assert!(ran.stdout.contains("[secret github_token "), "{ran:?}");
        assert!(ran.stdout.contains("[secret tools.webSearch.apiKey]"), "{ran:?}");
        for words in [
            &["runs", "show", "--last", "--full"][..],
            &["runs", "show", "--last", "--json"],
            &["runs", "list", "--json"],
            &["runs", "audit", "--json"],
            &["runs", "audit"],
            &["runs", "export", "--last", "--format", "html"],
            &["runs", "export", "--last", "--format", "md"],
            &["runs", "export", "--last", "--format", "jsonl"],
        ] {
            let ran: Ran = world.scene.run(words);
            assert_eq!(ran.code, Some(0), "{words:?}: {ran:?}");
            assert_hidden(&words.join(" "), &ran.shown());
        }
        for path in everything_below(&state(&world)) {
            if path.is_file() {
                assert_hidden(
                    &path.display().to_string(),
                    &world.scene.readable(&fs::read(&path).unwrap()),
                );
            }
        }
        for request in world.server.requests() {
            assert_hidden("a request", &String::from_utf8_lossy(&request.body));
        }
    }
}

#[test]
fn a_tool_that_is_called_by_hand_shows_no_secret() {
    let world = world(Vec::new());
    let missing = format!("path=no-{TOKEN}");
    for (words, code) in [
        (&["tools", "call", "read_file", "--arg", "path=leak.txt"][..], 0),
        (&["tools", "call", "read_file", "--arg", "path=leak.txt", "--json"], 0),
        (&["tools", "call", "run_command", "--arg", "command=cat leak.txt", "--yes"], 0),
        (&["tools", "call", "read_file", "--arg", &missing], 1),
    ] {
        let ran = world.scene.run(words);
        assert_eq!(ran.code, Some(code), "{words:?}: {ran:?}");
        assert_hidden(&words.join(" "), &ran.shown());
        assert!(ran.shown().contains("[secret github_token "), "{ran:?}");
    }
    let words = ["tools", "call", "run_command", "--arg", "command=cat leak.txt", "--yes"];
    let Some(session) = Session::start(&world.scene, &words) else { return };
    session.wait_for("[secret github_token ");
    let (screen, _) = session.end();
    assert_hidden("the terminal", &screen);
}

#[test]
fn a_model_that_refuses_with_a_secret_in_its_words_is_quoted_without_it() {
    for output in ["text", "json", "stream-json"] {
        let body = json!({ "error": { "message": format!("bad key {TOKEN}, not {SETTING}") } });
        let world = world(vec![Reaction::status(401, body.to_string())]);
        let ran = world.run(Wire::OpenAiChat, &["--output", output, "Go."]);
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert_hidden(output, &ran.shown());
        assert!(ran.shown().contains("bad key [secret github_token "), "{ran:?}");
    }
}

#[test]
fn a_terminal_shows_no_piece_of_a_secret_while_it_is_streamed() {
    let answer = format!("It begins. {TOKEN} and {KEY} and {SETTING}. It is over.");
    let world = world(vec![say(&answer).in_chunks_of(3)]);
    let words = ["run", "--model", "openai-chat/m", "Go."];
    let Some(session) = Session::start(&world.scene, &words) else { return };
    session.wait_for("It is over.");
    let (screen, code) = session.end();
    assert_eq!(code, Some(0), "{screen}");
    assert_hidden("the terminal", &screen);
    assert!(!screen.contains("ghp_") && screen.contains("[secret github_token "), "{screen}");
}

#[test]
fn a_file_with_a_token_in_it_can_be_edited_and_keeps_the_token() {
    let name = |world: &World| {
        let journals = everything_below(&state(world));
        let journal = journals.iter().find(|path| path.ends_with("journal.jsonl")).unwrap();
        let text = fs::read_to_string(journal).unwrap();
        let start = text.find("[secret github_token ").unwrap();
        text[start..start + "[secret github_token 123456]".len()].to_owned()
    };
    let env = |world: &World, text: &str| {
        fs::write(world.scene.project().join(".env"), text).unwrap();
    };
    // The name does not depend on the process, so it can be learned from another run.
    let look = || call("read_file", json!({ "path": ".env" }));
    let first = world(vec![look(), say("Done.")]);
    env(&first, &format!("A=1\nKEY={TOKEN}\n"));
    assert_eq!(first.run(Wire::OpenAiChat, &["Go."]).code, Some(0));
    let name = name(&first);
    let edit = || {
        let (old, new) = (format!("KEY={name}"), format!("TOKEN={name}"));
        call("edit_file", json!({ "path": ".env", "old_string": old, "new_string": new }))
    };
    let spell = call("run_command", json!({ "command": format!("echo '{name}'") }));
    let second = world(vec![look(), edit(), spell, say("Done.")]);
    env(&second, &format!("A=1\nKEY={TOKEN}\n"));
    let full = ["--mode", "full", "--output", "stream-json", "Go."];
    let ran = second.run(Wire::OpenAiChat, &full);
    assert_eq!(second.scene.read(".env"), format!("A=1\nTOKEN={TOKEN}\n"), "{ran:?}");
    assert!(ran.stdout.contains("not handed out here"), "programs get none: {ran:?}");

    // After a resume it has to be come across again; until then nothing is written.
    let third = world(vec![look(), say("Seen."), edit(), look(), edit(), say("Done.")]);
    env(&third, &format!("A=1\nKEY={TOKEN}\n"));
    assert_eq!(third.run(Wire::OpenAiChat, &["--mode", "full", "Go."]).code, Some(0));
    let words =
        ["runs", "resume", "--last", "Edit it.", "--mode", "full", "--output", "stream-json"];
    let ran = third.scene.run(&words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("is not known any more"), "{ran:?}");
    assert_eq!(third.scene.read(".env"), format!("A=1\nTOKEN={TOKEN}\n"), "{ran:?}");
    assert_hidden("a resumed run", &ran.shown());
}

#[test]
fn state_is_for_its_owner_alone_whatever_the_umask() {
    let world = world(vec![call("read_file", json!({ "path": "long.txt" })), say("Long.")]);
    fs::write(world.scene.project().join("long.txt"), "a line of text\n".repeat(4000)).unwrap();
    let convoke = env!("CARGO_BIN_EXE_convoke");
    let line = format!(
        "umask 000; {convoke} run --model openai-chat/m Go. && {convoke} runs list >/dev/null"
    );
    let output = world.scene.program(&["sh", "-c", &line]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let store = store(&world.scene);
    let run = store.list().unwrap().remove(0).run;
    let item = Item::new("i", "message", serde_json::Map::new());
    store.inbox(&run).unwrap().put(&item, Timestamp::from_millis(BEGIN)).unwrap();
    let found = everything_below(&state(&world));
    let names: Vec<String> = found
        .iter()
        .map(|path| path.strip_prefix(state(&world)).unwrap().display().to_string())
        .collect();
    for part in ["journal.jsonl", "blobs/", "heads/", "inbox/", "index"] {
        assert!(names.iter().any(|name| name.contains(part)), "{part} is missing: {names:?}");
    }
    for path in found {
        let metadata = fs::metadata(&path).unwrap();
        let wanted = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.permissions().mode() & 0o777, wanted, "{}", path.display());
    }
}

#[test]
fn a_program_gets_the_usual_variables_and_those_that_are_named() {
    let mut world =
        world(vec![call("run_command", json!({ "command": "env | sort" })), say("Done.")]);
    world.scene = world
        .scene
        .user("tools:\n  environment: [MYAPP_*, KUBECONFIG]\n")
        .variable("CARGO_HOME", "/cargo-home")
        .variable("INTERNAL_HOST", "db7.internal")
        .variable("KUBECONFIG", "/kube-config")
        .variable("MYAPP_MODE", "fast")
        .variable("MYAPP_TOKEN", "not-for-programs")
        .variable("https_proxy", "http://me:hunter2-and-4@proxy:3128");
    let ran = world.run(Wire::OpenAiChat, &["--mode", "full", "--output", "stream-json", "Go."]);
    for passed_on in ["CARGO_HOME=/cargo-home", "KUBECONFIG=/kube-config", "MYAPP_MODE=fast"] {
        assert!(ran.stdout.contains(passed_on), "{passed_on}: {ran:?}");
    }
    for kept in ["INTERNAL_HOST", "MYAPP_TOKEN", "OPENAI_API_KEY", "https_proxy"] {
        assert!(!ran.stdout.contains(&format!("{kept}=")), "{kept}: {ran:?}");
    }
}
