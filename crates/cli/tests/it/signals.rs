//! Ctrl-C and its kin. A pipe tells when the program runs; nothing waits for time to pass.

use std::path::Path;
use std::process::Child;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Ran, Scene};

const READY: &str = "echo half; echo $$ > pid; echo ready > ready; ";

fn make_pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Starts a call that says when it runs, and waits until it does.
fn start(scene: &Scene, script: &str) -> Child {
    let pipe = scene.project().join("ready");
    make_pipe(&pipe);
    let argument = format!("command={READY}{script}");
    let words = ["tools", "call", "run_command", "--allow", "execute", "--arg", &argument];
    let child = scene.command(&words).spawn().unwrap();
    assert_eq!(std::fs::read_to_string(pipe).unwrap(), "ready\n");
    child
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn ended(scene: &Scene, child: Child) -> Ran {
    scene.ended(child.wait_with_output().unwrap())
}

#[test]
fn an_interrupt_ends_the_call_and_keeps_what_there_was() {
    let scene = Scene::new();
    let child = start(&scene, "sleep 100");
    signal(&child, Signal::INT);
    let ran = ended(&scene, child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(ran.stdout, "half\n");
    assert!(ran.stderr.starts_with("error: Tool execution was cancelled"), "{ran:?}");
}

#[test]
fn termination_has_its_own_code() {
    for (number, sent) in [Signal::TERM, Signal::HUP].into_iter().enumerate() {
        let scene = Scene::new();
        let child = start(&scene, "sleep 100");
        signal(&child, sent);
        assert_eq!(ended(&scene, child).code, Some(143), "{number}");
    }
}

#[test]
fn a_second_interrupt_does_not_wait() {
    let scene = Scene::new();
    make_pipe(&scene.project().join("asked"));
    let stubborn = "trap 'echo asked > asked' TERM; while :; do sleep 100; done";
    let child = start(&scene, stubborn);
    signal(&child, Signal::INT);
    assert_eq!(std::fs::read_to_string(scene.project().join("asked")).unwrap(), "asked\n");
    signal(&child, Signal::INT);
    assert_eq!(ended(&scene, child).code, Some(130));
}

#[test]
fn nothing_is_left_running() {
    let scene = Scene::new();
    let child = start(&scene, "sleep 100 & wait");
    signal(&child, Signal::INT);
    assert_eq!(ended(&scene, child).code, Some(130));
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
