//! Servers that are not needed any more: they end by themselves if they can, and are told to before they are killed.

use convoke_testkit::Reply;
use serde_json::json;

use crate::run::World;
use crate::support::Scene;
use crate::waiting::{Lines, ended};

/// Regression: servers of a run were killed when it had ended, whatever they still had to write.
#[test]
fn a_server_of_a_run_may_tidy_up() {
    let call = Reply::default().call("mcp__slow__wait", json!({}));
    let world = World::new(vec![call.into(), Reply::text("Done.").into()]);
    let Some(lines) = Lines::add_with(&["tidies"], &world.scene) else { return };
    lines.make_known(&world.scene);
    let words = ["run", "--model", "openai-chat/some-model", "--mode", "full", "Wait."];
    let command = world.scene.command(&words).spawn().unwrap();
    let mut server = lines.started();
    assert_eq!(server.next().as_deref(), Some("called"));
    assert_eq!(server.next().as_deref(), Some("left alone"));
    server.go_on();
    assert_eq!(server.next().as_deref(), Some("tidied up"));
    let ran = ended(&world.scene, command);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"), "{ran:?}");
}

/// Regression: the command ended in the moment in which such a server would have been told to.
#[test]
fn a_server_that_stays_is_told_to_end() {
    let scene = Scene::new();
    let Some(lines) = Lines::add_with(&["stays"], &scene) else { return };
    let command = scene.command(&["tools", "call", "slow.wait"]).spawn().unwrap();
    let mut server = lines.started();
    for said in ["called", "left alone", "told to end"] {
        assert_eq!(server.next().as_deref(), Some(said));
    }
    let ran = ended(&scene, command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
