//! Input that means no good: it is refused with a message, never with a panic.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::pty::{Attached, Terminal};
use crate::support::{Ran, Scene};

#[track_caller]
fn refused(ran: &Ran, codes: &[i32]) {
    assert!(ran.code.is_some_and(|code| codes.contains(&code)), "{ran:?}");
    assert!(ran.stderr.contains("error: "), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
}

#[test]
fn bad_arguments_are_refused() {
    let scene = Scene::new().file("a.txt", "x");
    for (arguments, code) in [
        (r#"{"path": 3}"#, 2),
        (r#"{"path": ["a.txt"]}"#, 2),
        (r#"{"path": null}"#, 2),
        (r#"{"path": "a.txt", "extra": true}"#, 2),
        (r#"{"path": "a.txt", "limit": -1}"#, 2),
        (r#"{"path": "a.txt", "limit": 1e400}"#, 2),
        (r#"{"path": ""}"#, 2),
        (r#"{"path": "a\u0000b"}"#, 2),
        (r#"{"path": "../../outside"}"#, 3),
        (r#"{"path": "/etc/shadow"}"#, 3),
        (r#"{"path": "a.txt/../../../x"}"#, 3),
        (r#"{"path": "a.txt", "path": "b"}"#, 1),
        ("\"{}\"", 2),
        ("null", 2),
        ("{}", 2),
        ("", 2),
        ("{'path': 'a.txt'}", 2),
        ("NaN", 2),
    ] {
        refused(&scene.run(&["tools", "call", "read_file", arguments]), &[code]);
    }
}

#[test]
fn large_and_deep_arguments_are_refused() {
    let scene = Scene::new();
    let call = ["tools", "call", "write_file", "-"];
    let large = format!("{{\"path\": \"a\", \"content\": \"{}\"}}", "x".repeat(10 * 1024 * 1024));
    let ran = scene.run_with(large.as_bytes(), &call);
    refused(&ran, &[2]);
    assert!(ran.stderr.len() < 2000, "{}", ran.stderr.len());
    for depth in [100, 100_000] {
        let nested = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let deep = format!("{{\"path\": \"a\", \"content\": {nested}}}");
        refused(&scene.run_with(deep.as_bytes(), &call), &[2]);
    }
    assert!(!scene.project().join("a").exists());
}

#[test]
fn bytes_that_are_not_text_are_refused() {
    let scene = Scene::new().file("bytes", b"\xff\xfe\x00");
    let bad = OsStr::from_bytes(b"path=\xff");
    for position in
        [&["tools", "call", "ls"][..], &["tools", "call", "ls", "--arg"], &["config", "explain"]]
    {
        let output = scene.command(position).arg(bad).output().unwrap();
        refused(&scene.ended(&output), &[2]);
    }
    let output = scene.command(&["tools", "list"]).env("CONVOKE__TOOLS__TIMEOUT", bad).output();
    assert_eq!(output.unwrap().status.code(), Some(0), "a variable that is not text is none");
    refused(&scene.run(&["tools", "call", "base64_encode", "--arg", "text=@bytes"]), &[2]);
}

#[test]
fn names_are_only_names() {
    let scene = Scene::new();
    for name in ["", "../ls", "ls;id", "\u{1b}[2J", &"x".repeat(100_000)] {
        refused(&scene.run(&["tools", "call", name]), &[2]);
        refused(&scene.run(&["tools", "show", name]), &[2]);
    }
    for key in ["", "..", "a..b", "tools[9]", "\u{1b}", "tools.timeout.deeper"] {
        let ran = scene.run(&["config", "explain", key]);
        assert!(matches!(ran.code, Some(0 | 2)), "{key}: {ran:?}");
    }
}

#[test]
fn a_link_out_of_the_project_is_not_followed() {
    let scene = Scene::new();
    fs::write(scene.root().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(scene.root(), scene.project().join("out")).unwrap();
    let ran = scene.run(&["tools", "call", "read_file", "--arg", "path=out/secret"]);
    refused(&ran, &[3]);
    assert!(!ran.stdout.contains("secret"), "{ran:?}");
}

#[test]
fn a_working_directory_that_is_gone_is_told() {
    let scene = Scene::new();
    let gone = scene.project().join("gone");
    fs::create_dir(&gone).unwrap();
    let script = "rmdir \"$PWD\" && exec \"$0\" tools list";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_convoke")])
        .current_dir(&gone)
        .output();
    refused(&scene.ended(&output.unwrap()), &[1, 2]);
}

/// Runs as a user who may not read everything, also where the tests run as root.
#[test]
fn what_the_system_forbids_is_told() {
    let scene = Scene::new().file("secret", "x").file("closed/file", "x");
    let everyone = fs::Permissions::from_mode(0o755);
    for directory in [scene.root().to_path_buf(), scene.root().join("home"), scene.project()] {
        fs::set_permissions(directory, everyone.clone()).unwrap();
    }
    for name in ["secret", "closed"] {
        fs::set_permissions(scene.project().join(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let copy = scene.root().join("convoke");
    // Copied by another process: one that still has a program open for writing cannot start it.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_convoke")).arg(&copy).status();
    assert!(copied.unwrap().success());
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&copy);
        command.args(["tools", "call"]).args(arguments).current_dir(scene.project()).env_clear();
        command.env("HOME", scene.root().join("home"));
        if rustix::process::geteuid().is_root() {
            command.uid(65_534).gid(65_534);
        }
        scene.ended(&command.output().unwrap())
    };
    let read = run(&["read_file", "--arg", "path=secret"]);
    refused(&read, &[3]);
    assert!(read.stderr.contains("the operating system refused to read `secret`"), "{read:?}");
    let write = run(&["write_file", "--arg", "path=new", "--arg", "content=x"]);
    refused(&write, &[3]);
    let list = run(&["ls", "--arg", "path=closed"]);
    refused(&list, &[3]);
    let search = run(&["grep", "--arg", "pattern=x"]);
    assert!(search.stdout.contains("could not be"), "{search:?}");
    fs::set_permissions(scene.project().join("closed"), everyone).unwrap();
}

/// Each of these was waited for, or could be.
#[test]
fn nothing_waits_for_a_pipe_in_the_place_of_a_file() {
    let pipe = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
    };
    let said = "it is a named pipe, not a file";
    for (place, words) in [
        ("home/project/convoke.yml", &["config", "check"][..]),
        ("home/.config/convoke/convoke.yml", &["tools", "list"]),
        ("home/project/.convoke/agents/a.md", &["agents", "check"]),
        ("home/project/.mcp.json", &["mcp", "list"]),
        ("home/.config/convoke/trusted-folders", &["tools", "list"]),
        ("home/.local/state/convoke/runs/abcd1234/journal.jsonl", &["runs", "list"]),
        ("home/.local/state/convoke/runs/abcd1234/journal.jsonl", &["runs", "show", "abcd1234"]),
        ("home/.local/state/convoke/runs/abcd1234/journal.jsonl", &["runs", "audit"]),
    ] {
        let scene = Scene::new();
        let scene = if place.contains("trusted") {
            scene.file("convoke.yml", "tools: {timeout: 3}\n")
        } else {
            scene.variable("CONVOKE_TRUST_PROJECT", "1")
        };
        pipe(&scene.root().join(place));
        let ran = scene.run(words);
        assert!(ran.shown().contains(said), "{place}: {ran:?}");
    }
}

/// Regression: a rule of a folder that nobody trusts was shown as it is written.
#[test]
fn a_strange_folder_steers_no_terminal() {
    let rule = r#"{effect: deny, path: "x\e]0;t\a*", reason: "no\e]0;t\a"}"#;
    let all = r#"{effect: deny, path: "b*", reason: "no\e]0;t\a"}"#;
    let servers = r#"{"mcpServers": {"a\u001b]0;t\u0007": {"command": "true"}}}"#;
    let scene = Scene::new()
        .file("convoke.yml", format!("policy:\n  rules:\n    - {rule}\n    - {all}\n"))
        .file(".mcp.json", servers);
    for words in [
        &["policy", "show"][..],
        &["policy", "check", "read_file", r#"{"path": "b"}"#],
        &["doctor"],
        &["doctor", "--trust-project"],
        &["config", "show"],
    ] {
        let words = [words, &["--color", "never"]].concat();
        let shown = Terminal::start(&scene, 200, Attached::All, &words).end().screen;
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{words:?}: {shown:?}");
        assert!(shown.lines().count() > 1, "{words:?}: {shown:?}");
    }
}

/// Regression: on a pipe it went through as it is, and a name with a line break made a line of its own.
#[test]
fn names_of_files_and_servers_are_spelled_out_on_a_pipe_too() {
    let servers = r#"{"mcpServers": {"a\u001b]0;t\u0007": {"command": "true"}}}"#;
    let scene = Scene::new()
        .file("convoke.yml", "")
        .file(".mcp.json", servers)
        .file("agents/a\u{1b}\nok  forged.md", "---\nname: x\n---\nGo.\n");
    for words in
        [&["agents", "check", "agents"][..], &["mcp", "list"], &["mcp", "import", ".mcp.json"]]
    {
        let ran = scene.run(&[&["--trust-project"], words].concat());
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{words:?}: {shown:?}");
        assert!(shown.contains("\\u{1b}") && !shown.contains("\nok  forged"), "{words:?}: {shown}");
    }
}
