//! What is shown of servers and of what they offer, to whom it matters, and of what went wrong.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::mcp::find;
use crate::pty::{Attached, Terminal};
use crate::support::{Scene, skip};
use crate::waiting::python;

const CONVOKE: &str = env!("CARGO_BIN_EXE_convoke");
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/resources.py");

/// A scene with a server that has a prompt and something to read.
fn notes() -> Option<Scene> {
    let places = ["/usr/bin/python3", "/usr/local/bin/python3"];
    let python = places.into_iter().find(|place| std::path::Path::new(place).exists())?;
    let scene = Scene::new();
    let added = scene.run(&["mcp", "add", "notes", "--", python, FIXTURE]);
    assert_eq!(added.code, Some(0), "{added:?}");
    Some(scene)
}

/// Whoever writes a server learns here that nobody reads all of what it says.
#[test]
fn a_test_says_how_much_models_get_of_what_a_server_says() {
    let Some(python) = python() else { return };
    let scene = Scene::new();
    let said = |name: &str, flags: &[&str], bytes: &str| {
        let words = [&["mcp", "add", name][..], flags, &["--", python, FIXTURE, bytes]].concat();
        let added = scene.run(&words);
        assert_eq!(added.code, Some(0), "{added:?}");
        scene.stdout(&["mcp", "test", name])
    };
    let long = said("long", &["--trust"], "20000");
    assert!(long.contains("models get the first 2048 of these 20000 bytes"), "{long}");
    for short in [said("short", &["--trust"], "20"), said("stranger", &[], "20000")] {
        assert!(short.contains("instructions") && !short.contains("models get"), "{short}");
    }
}

/// Why a server failed is long; lines that a terminal breaks are not rows any more.
#[test]
fn the_list_of_servers_fits_a_terminal() {
    let scene = Scene::new();
    let words = ["mcp", "add", "dead", "--", "no-such-program-at-all-with-a-rather-long-name"];
    assert_eq!(scene.run(&words).code, Some(0));
    assert_eq!(scene.run(&["mcp", "list", "--check"]).code, Some(1));
    let list = ["mcp", "list", "--color", "never"];
    let shown = Terminal::start(&scene, 80, Attached::All, &list).end().screen;
    let row = shown.lines().find(|line| line.starts_with("dead  ")).unwrap();
    assert!(row.contains("failed just now: ") && row.chars().count() <= 80, "{shown}");
    assert!(shown.contains("server  source  state"), "{shown}");
}

#[test]
fn what_came_of_the_last_try_is_remembered() {
    let scene = Scene::new().file("s.sh", format!("#!/bin/sh\nexec {CONVOKE} mcp serve\n"));
    let script = scene.project().join("s.sh").display().to_string();
    for (name, command) in [("m", &["sh", &script][..]), ("dead", &["no-such-program-at-all"])] {
        let ran = scene.run(&[&["mcp", "add", name, "--"], command].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    scene.run(&["mcp", "list", "--check"]);
    let row = find(&scene.json(&["mcp", "list", "--json"]), "m").clone();
    assert_eq!((&row["tools"], &row["setback"]), (&json!(4), &Value::Null), "{row}");
    let listed = scene.stdout(&["mcp", "list"]);
    assert!(listed.contains("failed just now: "), "{listed}");

    std::fs::write(scene.project().join("s.sh"), "echo sorry >&2; exit 3\n").unwrap();
    scene.run(&["mcp", "test", "m"]);
    let row = find(&scene.json(&["mcp", "list", "--json"]), "m").clone();
    assert!(row["setback"]["why"].as_str().unwrap().contains("sorry"), "{row}");
    let doctor = scene.run(&["doctor"]);
    assert!(doctor.stdout.contains("m: failed just now: "), "{doctor:?}");
    assert!(!doctor.stdout.contains("Everything is in order"), "{doctor:?}");

    std::fs::write(scene.project().join("s.sh"), format!("exec {CONVOKE} mcp serve\n")).unwrap();
    let again = scene.stdout(&["mcp", "test", "m"]);
    assert!(again.contains("  before    failed just now: "), "{again}");
    let row = find(&scene.json(&["mcp", "list", "--json"]), "m").clone();
    assert_eq!(row["setback"], Value::Null, "it works again: {row}");
}

#[test]
fn doctor_looks_at_programs_that_are_named_in_full() {
    let scene = Scene::new().file("plain.txt", "x");
    let plain = scene.project().join("plain.txt").display().to_string();
    for (name, command) in [("a", "/nope/program"), ("b", plain.as_str()), ("c", "/tmp")] {
        let ran = scene.run(&["mcp", "add", name, "--", command]);
        assert!(ran.code == Some(0) && ran.stderr.contains("warning: "), "{ran:?}");
    }
    let doctor = scene.stdout(&["doctor"]);
    for said in
        ["a: there is no program `/nope/program`", "is not executable", "c: `/tmp` is a directory"]
    {
        assert!(doctor.contains(said), "{said}: {doctor}");
    }
}

#[test]
fn prompts_and_resources_are_listed() {
    let Some(scene) = notes() else { return skip("python3", "the server is written in it") };
    assert_snapshot!(scene.stdout(&["mcp", "prompts", "notes"]), @"
    prompt  takes       about
    greet   city tone?  Say hello
    ");
    assert_snapshot!(scene.stdout(&["mcp", "resources", "notes"]), @"
    address       name   about
    note://today  today
    ");
    let rows = scene.json(&["mcp", "prompts", "notes", "--json"]);
    assert_eq!(rows[0]["arguments"][0], json!({ "name": "city", "required": true }));
}

#[test]
fn an_untrusted_project_with_servers_says_so_wherever_tools_are_used() {
    let json = r#"{"mcpServers": {"pt": {"command": "x"}}}"#;
    let scene = Scene::new().file(".mcp.json", json).file("a.txt", "one\n");
    for words in [
        &["tools", "list"][..],
        &["tools", "call", "pt.x"],
        &["tools", "show", "ls"],
        &["mcp", "test", "pt"],
    ] {
        let ran = scene.run(words);
        assert!(
            ran.stderr.contains(".mcp.json is not used: this project is not trusted"),
            "{ran:?}"
        );
    }
}

#[test]
fn tools_that_are_all_left_out_are_counted() {
    let scene = Scene::new();
    let words = ["mcp", "add", "self", "--include", "gr*", "--exclude", "grep", "--", CONVOKE];
    assert_eq!(scene.run(&[&words[..], &["mcp", "serve"]].concat()).code, Some(0));
    let ran = scene.run(&["mcp", "tools", "self"]);
    assert_eq!(
        ran.stderr, "it has 4 tools, and include and exclude leave none of them\n",
        "{ran:?}"
    );
    let tried = scene.stdout(&["mcp", "test", "self"]);
    assert!(tried.contains("4 tools more, left out by include and exclude"), "{tried}");
}

#[test]
fn a_tool_is_named_in_the_same_way_to_call_it_and_to_ask_about_it() {
    let scene = Scene::new();
    let add = ["mcp", "add", "self", "--", CONVOKE, "mcp", "serve"];
    assert_eq!(scene.run(&add).code, Some(0));
    let unknown = scene.run(&["policy", "check", "self.grep", r#"{"pattern": "x"}"#]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("convoke mcp tools self"), "{unknown:?}");
    scene.run(&["mcp", "test", "self"]);
    let known = scene.run(&["policy", "check", "self.grep", r#"{"pattern": "x"}"#]);
    assert_eq!(known.code, Some(3), "it is asked about: {known:?}");
}

/// What a server says of its tools must not clear a screen, name a window or write a clipboard.
#[test]
fn words_of_a_server_do_not_steer_a_terminal() {
    let Some(scene) = notes() else { return skip("python3", "the server is written in it") };
    let python =
        find(&scene.json(&["mcp", "list", "--json"]), "notes")["reached"]["command"].clone();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/steers.py");
    let added = scene.run(&["mcp", "add", "steers", "--", python.as_str().unwrap(), fixture]);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert_eq!(scene.run(&["mcp", "test", "steers"]).code, Some(0));
    for words in [
        &["tools", "list", "--category", "mcp"][..],
        &["tools", "show", "steers.look"],
        &["mcp", "tools", "steers"],
        &["mcp", "tools", "steers", "--full"],
    ] {
        let words = [words, &["--color", "never"]].concat();
        let shown = Terminal::start(&scene, 200, Attached::All, &words).end().screen;
        assert!(shown.contains("Looks."), "{words:?}: {shown:?}");
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{words:?}: {shown:?}");
    }
}

/// This is what people paste into a report.
#[test]
fn keys_among_arguments_and_in_addresses_are_not_shown() {
    let scene = Scene::new();
    let address = "http://user:pwpwpw99@127.0.0.1:9/mcp?api_key=sk-live-qqqq1234567890";
    for words in [
        &["one", "--", "true", "--api-key", "sk-live-zzzzzz1234567890"][..],
        &["two", address],
        &["three", "--", "true", "--password=hunter22"],
    ] {
        let ran = scene.run(&[&["mcp", "add"], words].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("warning: what looks like a key is "), "{ran:?}");
        assert!(ran.stderr.contains("write `${NAME}` there"), "{ran:?}");
    }
    let by_variable = ["mcp", "add", "four", "--", "true", "--api-key", "${KEY:-}"];
    let ran = scene.run(&by_variable);
    assert!(!ran.stderr.contains("looks like a key"), "{ran:?}");
    for words in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "explain", "tools.mcpServers"],
        &["config", "explain", "tools", "--json"],
        &["mcp", "list"],
        &["mcp", "list", "--json"],
    ] {
        let shown = scene.stdout(words);
        for key in ["zzzzzz", "qqqq", "pwpwpw", "hunter22"] {
            assert!(!shown.contains(key), "{words:?}: {shown}");
        }
        assert!(shown.contains("--api-key") && shown.contains("127.0.0.1:9/mcp"), "{shown}");
    }
    let four = scene.stdout(&["config", "show"]);
    assert!(four.contains("${KEY:-}"), "{four}");
}

/// Where a server starts is told to whoever uses or looks at it, and to nobody else.
#[test]
fn that_a_server_is_confined_here_is_told_where_it_matters() {
    let scene = Scene::new();
    for (name, words) in [("here", &["--workdir", "workspace"][..]), ("other", &[])] {
        let ran = scene.run(&[&["mcp", "add", name], words, &["--", "sh"]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let said = "`here` starts in a folder that is not trusted";
    for (words, is_told) in [
        (&["mcp", "list"][..], true),
        (&["mcp", "get", "here"], true),
        (&["doctor"], true),
        (&["mcp", "get", "other"], false),
        (&["tools", "show", "ls"], false),
        (&["mcp", "remove", "other"], false),
    ] {
        let ran = scene.run(words);
        assert_eq!(ran.shown().matches(said).count(), usize::from(is_told), "{words:?}: {ran:?}");
    }
}

#[test]
fn servers_that_failed_are_not_everything_that_works() {
    let scene = Scene::new();
    assert_eq!(scene.run(&["mcp", "add", "dead", "--", "no-such-program-at-all"]).code, Some(0));
    assert_eq!(scene.run(&["mcp", "test", "dead"]).code, Some(1));
    let ran = scene.run(&["doctor"]);
    assert!(ran.code == Some(1) && ran.stdout.contains("Something does not work: "), "{ran:?}");
    let lines = ran.stdout.lines().filter(|line| line.trim_start().starts_with("dead: "));
    assert_eq!(lines.count(), 1, "one line a server: {ran:?}");
}
