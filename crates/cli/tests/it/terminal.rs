//! The command on a real terminal: colour, width, questions and live output.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;

use insta::assert_snapshot;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::Scene;

struct Terminal {
    child: Child,
    screen: File,
}

impl Terminal {
    /// Starts the command on a terminal of this width.
    fn start(scene: &Scene, columns: u16, arguments: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let user: OwnedFd =
            rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let child = scene
            .command(arguments)
            .stdin(user.try_clone().unwrap())
            .stdout(user.try_clone().unwrap())
            .stderr(user)
            .spawn()
            .unwrap();
        Self { child, screen: File::from(master) }
    }

    /// Reads until this text is there.
    fn wait_for(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&seen).ends_with(text) {
            match self.screen.read(&mut byte) {
                Ok(1) => seen.push(byte[0]),
                _ => panic!("`{text}` did not come: {}", String::from_utf8_lossy(&seen)),
            }
        }
        String::from_utf8_lossy(&seen).replace('\r', "")
    }

    /// Types something.
    fn type_in(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).unwrap();
    }

    /// Reads to the end. A terminal whose last user went away answers with an error.
    fn end(mut self) -> (String, Option<i32>) {
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = self.screen.read(&mut buffer) {
            seen.extend_from_slice(&buffer[..length]);
        }
        let code = self.child.wait().unwrap().code();
        (String::from_utf8_lossy(&seen).replace('\r', ""), code)
    }
}

fn on_terminal(scene: &Scene, columns: u16, arguments: &[&str]) -> String {
    Terminal::start(scene, columns, arguments).end().0
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
      timeout     30s
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
    let words = ["tools", "call", "run_command", "--allow", "execute", "--arg"];
    let script = "command=echo first; read x < go; echo second; exit 4";
    let pipe = scene.project().join("go");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
    let mut terminal =
        Terminal::start(&scene, 80, &[&words[..], &[script, "--color=never"]].concat());
    terminal.wait_for("first\r\n");
    std::fs::write(pipe, "go\n").unwrap();
    let (rest, code) = terminal.end();
    assert_eq!(rest, "second\nerror: the command ended with exit status: 4\n");
    assert_eq!(code, Some(1));
}

#[test]
fn a_person_is_asked_before_a_program_runs() {
    for (answer, code) in [("y\n", 0), ("n\n", 3), ("\n", 3), ("\u{4}", 3)] {
        let scene = Scene::new().user("policy:\n  kinds: {execute: ask}\n");
        let words = ["tools", "call", "run_command", "--arg", "command=echo it-ran"];
        let mut terminal = Terminal::start(&scene, 80, &words);
        let question = terminal.wait_for("May it? [y/N] ");
        assert!(question.contains("wants to run a program:\n  echo it-ran\n"), "{question:?}");
        terminal.type_in(answer);
        let (rest, ended) = terminal.end();
        assert_eq!(ended, Some(code), "{answer:?}: {rest}");
        assert_eq!(rest.contains("it-ran\n"), code == 0, "{rest}");
    }
}

#[test]
fn a_question_can_be_interrupted() {
    let scene = Scene::new().user("policy:\n  kinds: {execute: ask}\n");
    let words = ["tools", "call", "run_command", "--arg", "command=echo it-ran"];
    let mut terminal = Terminal::start(&scene, 80, &words);
    terminal.wait_for("May it? [y/N] ");
    let pid = rustix::process::Pid::from_child(&terminal.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(terminal.end().1, Some(130));
}
