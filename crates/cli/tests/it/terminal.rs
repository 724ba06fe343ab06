//! The command on a real terminal: colour, width, questions and live output.

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::pty::{Attached, Terminal};
use crate::support::Scene;

fn start(scene: &Scene, arguments: &[&str]) -> Terminal {
    Terminal::start(scene, 80, Attached::All, arguments)
}

fn on_terminal(scene: &Scene, columns: u16, arguments: &[&str]) -> String {
    Terminal::start(scene, columns, Attached::All, arguments).end().screen
}

#[test]
fn a_listing_fits_the_terminal() {
    let list = ["tools", "list", "--category", "file", "--color", "never"];
    for columns in [40, 60, 80, 120] {
        let text = on_terminal(&Scene::new(), columns, &list);
        let widest = text.lines().map(str::len).max().unwrap();
        assert!(widest <= columns.into(), "{columns}: {text}");
    }
    let narrow = on_terminal(&Scene::new(), 60, &["tools", "list", "--category", "data"]);
    assert!(narrow.contains("\u{1b}[1m"), "{narrow:?}");
    let show = on_terminal(&Scene::new(), 50, &["tools", "show", "sleep", "--color=never"]);
    assert_snapshot!(show, @"
    sleep
      Waits for a number of seconds.

      category    system
      kind        think
      permission  allow
      offered     no
      timeout     10m
      repeat      pure
      effects     none named by arguments

    Parameters
      duration  number, required
          How many seconds; fractions are allowed.

    Output
      slept  number
          How many seconds it was.

    Example
      convoke tools call sleep --arg duration=1
    ");
}

#[test]
fn a_dumb_terminal_gets_plain_text() {
    let scene = Scene::new().variable("TERM", "dumb").variable("LANG", "en_GB.UTF-8");
    let text = on_terminal(&scene, 50, &["tools", "list", "--category", "file"]);
    assert!(text.is_ascii() && !text.contains('\u{1b}'), "{text:?}");
    assert!(text.contains("..."), "{text}");
    let scene = Scene::new().variable("LANG", "en_GB.UTF-8");
    assert!(on_terminal(&scene, 50, &["tools", "list", "--category", "file"]).contains('…'));
}

#[test]
fn diffs_are_coloured() {
    let scene = Scene::new().file("a.txt", "old\n");
    let words = ["--arg", "path=a.txt", "--arg", "old_string=old", "--arg", "new_string=new"];
    let text = on_terminal(&scene, 80, &[&["tools", "call", "edit_file"][..], &words].concat());
    assert!(text.contains("\u{1b}[32m+new\u{1b}[0m\n"), "{text:?}");
}

#[test]
fn what_a_file_says_does_not_steer_the_terminal() {
    let scene = Scene::new().file("evil.txt", "a\u{1b}]0;title\u{7}b\n");
    let text = on_terminal(&scene, 80, &["tools", "call", "read_file", "--arg", "path=evil.txt"]);
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    assert!(text.contains("a\\u{1b}]0;title\\u{7}b\n"), "{text:?}");
}

#[test]
fn output_of_a_program_is_shown_once_while_it_runs() {
    let scene = Scene::new();
    let script = "command=echo first; until [ -e go ]; do :; done; echo second; exit 4";
    let words = ["tools", "call", "run_command", "--allow", "execute", "--arg", script];
    let mut terminal = start(&scene, &[&words[..], &["--color=never"]].concat());
    terminal.wait_for("first\r\n");
    std::fs::write(scene.project().join("go"), "").unwrap();
    let ended = terminal.end();
    assert_eq!(ended.screen, "second\nerror: the command ended with exit status: 4\n");
    assert_eq!(ended.code, Some(1));
}

#[test]
fn a_person_is_asked_before_a_program_runs() {
    for (answer, code) in [("y\n", 0), ("n\n", 3), ("\n", 3), ("\u{4}", 3)] {
        let scene = Scene::new().user("policy:\n  kinds: {execute: ask}\n");
        let words = ["tools", "call", "run_command", "--arg", "command=echo it-ran"];
        let mut terminal = start(&scene, &words);
        let question = terminal.wait_for("May it? [y/N] ");
        assert!(question.contains("wants to run a program:\n  echo it-ran\n"), "{question:?}");
        terminal.type_in(answer);
        let ended = terminal.end();
        assert_eq!(ended.code, Some(code), "{answer:?}: {ended:?}");
        assert_eq!(ended.screen.contains("it-ran\n"), code == 0, "{ended:?}");
    }
}

#[test]
fn a_question_can_be_interrupted() {
    let scene = Scene::new().user("policy:\n  kinds: {execute: ask}\n");
    let words = ["tools", "call", "run_command", "--arg", "command=echo it-ran"];
    let mut terminal = start(&scene, &words);
    terminal.wait_for("May it? [y/N] ");
    terminal.signal(Signal::INT);
    assert_eq!(terminal.end().code, Some(130));
}
