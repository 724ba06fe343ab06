//! Ctrl-C and its kin. What a program says tells that it runs; nothing waits for time to pass.

use rustix::process::Signal;

use crate::pty::{Attached, Terminal};
use crate::support::Scene;

/// Starts a call that says when it runs, and waits until it does.
fn start(scene: &Scene, before: &str, after: &str) -> Terminal {
    let argument = format!("command=echo $$ > pid; {before} echo ready; {after}");
    let words = ["tools", "call", "run_command", "--allow", "execute", "--arg", &argument];
    let mut terminal = Terminal::start(scene, 80, Attached::ErrorsOnly, &words);
    terminal.wait_for("ready\r\n");
    terminal
}

#[test]
fn an_interrupt_ends_the_call_and_keeps_what_there_was() {
    let scene = Scene::new();
    let terminal = start(&scene, "", "sleep 100");
    terminal.signal(Signal::INT);
    let ended = terminal.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_eq!(ended.stdout, "ready\n");
    assert!(ended.screen.contains("Tool execution was cancelled"), "{ended:?}");
}

#[test]
fn termination_has_its_own_code() {
    for signal in [Signal::TERM, Signal::HUP] {
        let scene = Scene::new();
        let terminal = start(&scene, "", "sleep 100");
        terminal.signal(signal);
        assert_eq!(terminal.end().code, Some(143), "{signal:?}");
    }
}

#[test]
fn a_second_interrupt_does_not_wait() {
    let scene = Scene::new();
    let mut terminal = start(&scene, "trap 'echo asked' TERM;", "while :; do sleep 100; done");
    terminal.signal(Signal::INT);
    terminal.wait_for("asked\r\n");
    terminal.signal(Signal::INT);
    assert_eq!(terminal.end().code, Some(130));
}

/// goose#2337, #1075: whoever stops a call stops its processes.
#[test]
fn nothing_is_left_running() {
    let scene = Scene::new();
    let terminal = start(&scene, "", "sleep 100 & wait");
    terminal.signal(Signal::INT);
    assert_eq!(terminal.end().code, Some(130));
    let group = scene.read("pid").trim().to_owned();
    assert_eq!(members_of(&group), Vec::<String>::new());
}

/// Returns the processes of a group that have not ended.
fn members_of(group: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let stats =
        processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let is_member = |stat: &String| {
        // After the name, in brackets, come the state, the parent and the group.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
        fields.get(3) == Some(&group) && fields.get(1) != Some(&"Z")
    };
    stats.filter(is_member).collect()
}
