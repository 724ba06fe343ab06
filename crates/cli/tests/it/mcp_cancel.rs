//! Ctrl-C while a server works: it is told, it ends, and the command says that it was stopped.

use convoke_testkit::Reply;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::run::World;
use crate::screen::Session;
use crate::support::{Ran, Scene};
use crate::waiting::{Lines, ended};

/// Starts a command that has a server called, interrupts it there, and waits until both have ended.
fn interrupted(scene: &Scene, lines: &Lines, words: &[&str]) -> Ran {
    let command = scene.command(words).spawn().unwrap();
    let mut server = lines.started();
    assert_eq!(server.next().as_deref(), Some("called"));
    kill_process(Pid::from_child(&command), Signal::INT).unwrap();
    assert_eq!(server.next().as_deref(), Some("cancelled"), "the call is taken back");
    assert_eq!(server.next(), None, "the process ends");
    ended(scene, command)
}

#[test]
fn an_interrupt_takes_the_call_of_a_run_back() {
    let call = Reply::default().call("mcp__slow__wait", json!({}));
    let world = World::new(vec![call.into()]);
    let Some(lines) = Lines::add(&world.scene) else { return };
    lines.make_known(&world.scene);
    let words = ["--model", "openai-chat/some-model", "--mode", "full", "--output", "json"];
    let ran = interrupted(&world.scene, &lines, &[&["run"], &words[..], &["Wait."]].concat());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let ended = (&report["status"], &report["cause"]);
    assert_eq!(ended, (&json!("cancelled"), &json!("interrupted")), "{report}");
    let listed = world.scene.json(&["runs", "list", "--json"]);
    assert_eq!(listed[0]["condition"]["status"], "cancelled", "{listed}");
}

#[test]
fn an_interrupt_takes_a_single_call_back() {
    let scene = Scene::new();
    let Some(lines) = Lines::add(&scene) else { return };
    lines.make_known(&scene);
    let ran = interrupted(&scene, &lines, &["tools", "call", "slow.wait"]);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.stderr.contains("Tool execution was cancelled"), "{ran:?}");
}

/// Regression: nothing was heard while a chat waited for a server.
#[test]
fn an_interrupt_ends_the_waiting_for_what_a_message_mentions() {
    assert_interrupt_gives_back("see @slow:note://today", "reading slow:note://today", "read");
}

#[test]
fn an_interrupt_ends_the_waiting_for_a_prompt() {
    assert_interrupt_gives_back("/slow:greet", "asking slow for greet", "asked to fill in");
}

/// An interrupt, once the server has heard of what is typed here, puts it back to be typed on. No model is asked.
fn assert_interrupt_gives_back(typed: &str, told: &str, heard: &str) {
    let world = World::new(vec![Reply::text("Never asked.").into()]);
    let Some(lines) = Lines::add(&world.scene) else { return };
    lines.make_known(&world.scene);
    let words = ["chat", "--model", "openai-chat/some-model"];
    let Some(mut chat) = Session::start(&world.scene, &words) else { return };
    chat.wait_for_prompt();
    chat.type_in(&format!("{typed}\r"));
    chat.wait_for(told);
    let mut server = lines.started();
    assert_eq!(server.next().as_deref(), Some(heard));
    chat.signal(Signal::INT);
    chat.wait_for("stopped before it was done");
    chat.wait_until("the line", |text| text.ends_with(&format!("\n› {typed}")));
    chat.type_in("\u{15}/quit\r");
    assert_eq!(chat.end().1, Some(0));
    assert_eq!(world.requests(), 0);
}
