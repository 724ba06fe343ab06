//! Pipes and colours.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::Scene;

#[test]
fn a_reader_that_leaves_is_no_error() {
    let scene = Scene::new();
    for command in [
        &["tools", "list", "--json"][..],
        &["config", "schema"],
        &["completions", "zsh"],
        &["--help"],
    ] {
        let mut child = scene.command(command).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::with_capacity(1, child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        drop(stdout);
        let ran = scene.ended(&child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{command:?}");
    }
}

#[test]
fn a_shell_pipeline_ends_quietly() {
    let scene = Scene::new().file("long.txt", "0123456789\n".repeat(100_000));
    let script = "\"$0\" tools call read_file --arg path=long.txt | head -1";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_convoke")])
        .current_dir(scene.project())
        .env_clear()
        .env("HOME", scene.root())
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output();
    let ran = scene.ended(&output.unwrap());
    assert_eq!(ran.stderr, "");
    assert_eq!(ran.stdout.lines().count(), 1);
}

#[test]
fn a_full_disk_is_an_error() {
    let scene = Scene::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = scene.command(&["tools", "list"]).stdout(full).output().unwrap();
    let ran = scene.ended(&output);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.starts_with("error: the output cannot be written\ncause: "), "{ran:?}");
}

#[test]
fn colour_is_where_it_is_wanted() {
    let coloured = |scene: Scene, words: &[&str]| {
        scene.stdout(&[&["tools", "list"], words].concat()).contains('\u{1b}')
    };
    let scene = Scene::new;
    assert!(!coloured(scene(), &[]));
    assert!(coloured(scene(), &["--color", "always"]));
    assert!(coloured(scene().variable("CLICOLOR_FORCE", "1"), &[]));
    assert!(!coloured(scene().variable("CLICOLOR_FORCE", "1").variable("NO_COLOR", "1"), &[]));
    assert!(!coloured(scene().variable("CLICOLOR_FORCE", "1"), &["--color=never"]));
    assert!(coloured(scene().variable("NO_COLOR", "1"), &["--color=always"]));
    let help = scene().stdout(&["--help", "--color=always"]);
    assert!(help.contains('\u{1b}'), "{help:?}");
    let wrong = scene().run(&["--color=always", "nonsense"]);
    assert!(wrong.stderr.contains('\u{1b}'), "{wrong:?}");
}
