//! What would let a model widen its own rights: its state, the user's settings, what runs later.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use convoke_testkit::{Reaction, Reply, Wire};
use insta::assert_snapshot;
use serde_json::json;

use crate::run::World;
use crate::support::{Ran, Scene};

/// Works in the home directory, where the keys, the settings and the state are.
fn at_home(scene: &Scene, tool: &str, arguments: &serde_json::Value) -> Ran {
    let home = scene.root().join("home");
    let arguments = arguments.to_string();
    let words = ["--cwd", home.to_str().unwrap(), "tools", "call", tool, &arguments];
    let kinds = ["edit", "read", "search", "delete", "move"];
    let allowed: Vec<&str> = kinds.iter().flat_map(|kind| ["--allow", kind]).collect();
    scene.run(&[&words[..], &allowed].concat())
}

fn home() -> Scene {
    let scene = Scene::new().user("tools: {timeout: 60000}\n");
    for (name, content) in [
        (".ssh/id_ed25519", "needle of a key"),
        (".local/state/convoke/runs/r/journal.jsonl", "needle of a run"),
        ("notes.txt", "needle of a note"),
    ] {
        let path = scene.root().join("home").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let home = scene.root().join("home");
    std::os::unix::fs::symlink(".local/state", home.join("state")).unwrap();
    std::os::unix::fs::symlink(".config", home.join("settings")).unwrap();
    scene
}

#[test]
fn file_tools_reach_neither_keys_nor_settings_nor_state() {
    let scene = home();
    let write = |path: &str| json!({ "path": path, "content": "policy: {}" });
    for (tool, arguments) in [
        ("write_file", write(".local/state/convoke/runs/r/inbox/1.json")),
        ("write_file", write("state/convoke/runs/r/inbox/1.json")),
        ("write_file", write(".config/convoke/rules.yml")),
        ("write_file", write("settings/convoke/rules.yml")),
        ("write_file", write("project/../.config/convoke/rules.yml")),
        ("read_file", json!({ "path": ".ssh/id_ed25519" })),
        ("read_file", json!({ "path": "state/convoke/runs/r/journal.jsonl" })),
        ("grep", json!({ "pattern": "needle", "path": ".ssh" })),
        ("move_file", json!({ "from": "notes.txt", "to": ".ssh/authorized_keys" })),
        ("move_file", json!({ "from": ".config", "to": "c" })),
        ("delete_file", json!({ "path": ".ssh/id_ed25519" })),
    ] {
        let ran = at_home(&scene, tool, &arguments);
        assert_eq!(ran.code, Some(3), "{tool} {arguments}: {ran:?}");
        assert!(ran.stderr.contains("is hidden from tools"), "{tool} {arguments}: {ran:?}");
    }
    let found = at_home(&scene, "grep", &json!({ "pattern": "needle" }));
    assert!(found.stdout.contains("a note"), "{found:?}");
    assert!(!found.stdout.contains("a key") && !found.stdout.contains("a run"), "{found:?}");
    assert!(!scene.root().join("home/.config/convoke/rules.yml").exists());
}

#[test]
fn a_configuration_file_that_is_named_is_hidden_as_well() {
    let scene = Scene::new().file("ci.yml", "tools: {timeout: 60000}\n");
    let arguments = json!({ "path": "ci.yml", "content": "policy: {}" }).to_string();
    let words =
        ["--config", "ci.yml", "tools", "call", "write_file", &arguments, "--allow", "edit"];
    let ran = scene.run(&words);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("is hidden from tools"), "{ran:?}");
}

#[test]
fn what_decides_what_runs_later_is_asked_about_in_every_mode() {
    let judge = |scene: &Scene, tool: &str, arguments: &serde_json::Value| {
        scene.run(&["policy", "check", "--mode", "full", tool, &arguments.to_string()])
    };
    let scene = Scene::new();
    let write = |path: &str| json!({ "path": path, "content": "" });
    assert_snapshot!(judge(&scene, "write_file", &write("convoke.yml")).shown(), @"
    ask: it decides which programs run here later
      by user rule 1 (built in)
    --- stderr
    --- exit 3
    ");
    for path in ["sub/convoke.yaml", ".git/hooks/pre-commit", ".git/config", "sub/.git/HEAD"] {
        let ran = judge(&scene, "write_file", &write(path));
        assert!(ran.stdout.contains("(built in)"), "{path}: {ran:?}");
    }
    let moved = json!({ "from": "x", "to": ".git/hooks/pre-commit" });
    assert!(judge(&scene, "move_file", &moved).stdout.starts_with("ask"));
    for (tool, arguments) in [
        ("write_file", write("AGENTS.md")),
        ("write_file", write(".github/x")),
        ("read_file", json!({ "path": ".git/config" })),
    ] {
        let ran = judge(&scene, tool, &arguments);
        assert!(ran.stdout.starts_with("allow"), "{tool} {arguments}: {ran:?}");
    }
}

#[test]
fn a_file_that_servers_come_from_is_asked_about_in_every_mode() {
    let check = |scene: &Scene, path: &str, more: &[&str]| {
        let arguments = json!({ "path": path, "content": "" }).to_string();
        let words = ["policy", "check", "--mode", "full", "write_file", &arguments];
        scene.run(&[more, &words].concat()).stdout
    };
    let project = Scene::new().file("convoke.yml", "tools: {mcpFiles: ['a [1].json']}\n");
    assert!(check(&project, "a [1].json", &["--trust-project"]).contains("(built in)"));
    assert!(check(&project, "a 1.json", &["--trust-project"]).starts_with("allow"));
    let list = "tools: {mcpFiles: [~/project/b.json]}\n";
    let user = Scene::new().user(list).file("b.json", "{}");
    assert!(check(&user, "b.json", &[]).contains("which servers are started here later"));
    let rule = "policy: {rules: [{effect: allow, path: '**/b.json'}]}\n";
    let allowed = Scene::new().user(&format!("{list}{rule}")).file("b.json", "{}");
    assert!(check(&allowed, "b.json", &[]).starts_with("allow"));
}

#[test]
fn a_rule_of_the_user_that_names_such_a_file_allows_it() {
    let judge = |rule: &str, path: &str| {
        let scene = Scene::new().user(&format!("policy: {{rules: [{rule}]}}\n"));
        let arguments = json!({ "path": path, "content": "" }).to_string();
        let ran = scene.run(&["policy", "check", "--mode", "full", "write_file", &arguments]);
        ran.stdout.split(':').next().unwrap().to_owned()
    };
    let (git, own) = (".git/hooks/pre-commit", "convoke.yml");
    assert_eq!(judge("{effect: allow, path: '.git/**'}", git), "allow");
    assert_eq!(judge("{effect: allow, path: '.git/**'}", own), "ask");
    assert_eq!(judge("{effect: allow, path: '**/convoke.yml'}", own), "allow");
    assert_eq!(judge("{effect: allow, path: '**'}", own), "ask", "it does not name it");
    assert_eq!(judge("{effect: allow, path: '.git/info/*'}", git), "ask");
    assert_eq!(judge("{effect: deny, path: '.git/**'}", git), "deny");
}

const HOOK: &str = "hooks: [{on: [end], command: [./hook.sh]}]\n";

fn with_hook(scene: Scene) -> Scene {
    let scene = scene.file("hook.sh", "#!/bin/sh\n");
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(scene.project().join("hook.sh"), mode).unwrap();
    scene
}

#[test]
fn a_hook_that_a_model_can_rewrite_is_refused() {
    let refused = |scene: &Scene, words: &[&str]| {
        let ran = scene.run(&[words, &["config", "check"]].concat());
        assert_eq!(ran.code, Some(7), "{ran:?}");
        assert!(
            ran.stderr.contains("the hook `hook.sh` runs `[root]/home/project/hook.sh`"),
            "{ran:?}"
        );
        assert!(ran.stderr.contains("tools and programs can write"), "{ran:?}");
    };
    refused(&with_hook(Scene::new()).file("convoke.yml", HOOK), &["--trust-project"]);
    refused(&with_hook(Scene::new()).user(HOOK), &[]);
    let shell = HOOK.replace("./hook.sh", "sh, hook.sh").replace("on:", "name: hook.sh, on:");
    refused(&with_hook(Scene::new()).user(&shell), &[]);

    let scene = with_hook(Scene::new());
    let full = scene.project().join("hook.sh").display().to_string();
    let scene = scene.user(&HOOK.replace("./hook.sh", &full));
    let checked = scene.stdout(&["config", "check"]);
    assert!(checked.contains("hook hook.sh: [root]/home/project/hook.sh"), "{checked}");
}

#[test]
fn hooks_are_listed_with_whether_their_programs_are_there() {
    let hooks = "hooks:\n  - {on: [end], command: [sh, -c, 'true']}\n  \
                 - {on: [end], name: gone, command: [no-such-program]}\n";
    let scene = Scene::new().user(hooks);
    let checked = scene.stdout(&["config", "check"]);
    assert!(
        checked.contains("hook sh: /usr/bin/sh") || checked.contains("hook sh: /bin/sh"),
        "{checked}"
    );
    assert!(checked.contains("hook gone: `no-such-program` is not there"), "{checked}");
    let doctor = scene.run(&["doctor"]);
    assert!(doctor.stdout.contains("gone: `no-such-program` is not there"), "{doctor:?}");
    let json = scene.json(&["config", "check", "--json"]);
    assert_eq!(json["hooks"][1]["program"], serde_json::Value::Null);
}

fn call(tool: &str, arguments: serde_json::Value) -> Reaction {
    Reply::default().call(tool, arguments).into()
}

const TOKEN: &str = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";

/// The key stands in no file: a file that says its name must not hand it out.
#[test]
fn a_file_that_names_a_secret_does_not_open_it() {
    let name = "[secret ANTHROPIC_API_KEY]";
    let copy = || call("write_file", json!({ "path": "out.txt", "content": name }));
    let world = World::new(vec![
        call("read_file", json!({ "path": "trap.txt" })),
        copy(),
        Reply::text("Done.").into(),
        copy(),
        Reply::text("Done.").into(),
    ]);
    fs::write(world.scene.project().join("trap.txt"), format!("{name} {TOKEN}\n")).unwrap();
    let words = ["--mode", "full", "--output", "stream-json", "Go."];
    let ran = world.run(Wire::OpenAiChat, &words);
    assert!(ran.stdout.contains("not handed out here"), "{ran:?}");
    let words = ["runs", "resume", "--last", "Again.", "--mode", "full", "--output", "stream-json"];
    let ran = world.scene.run(&words);
    assert!(ran.stdout.contains("not handed out here"), "the refusal named it: {ran:?}");
    assert!(!world.scene.project().join("out.txt").exists());
}

/// A secret that tools came across goes into files, and nowhere else.
#[test]
fn only_tools_that_write_files_get_a_secret() {
    let name = "[secret ANTHROPIC_API_KEY]";
    let look = || call("read_file", json!({ "path": "leak.txt" }));
    let world = World::new(vec![
        look(),
        call("set_env", json!({ "key": "LEAK", "value": name })),
        call("base64_encode", json!({ "text": name })),
        call("reader", json!({ "text": name })),
        call("write_file", json!({ "path": "out.txt", "content": name })),
        Reply::text("Done.").into(),
    ]);
    let key = "sk-secret-word";
    let mut world = world;
    world.scene = world.scene.user(
        "tools:\n  enabled: ['*']\n  commands:\n    - {name: reader, description: Reads., kind: read, \
         command: [cat], parameters: {type: object, properties: {text: {type: string}}}}\n",
    );
    fs::write(world.scene.project().join("leak.txt"), format!("{key}\n")).unwrap();
    let words = ["--mode", "full", "--output", "stream-json", "Go."];
    let ran = world.run(Wire::OpenAiChat, &words);
    assert_eq!(ran.stdout.matches("tool_call_denied").count(), 3, "{ran:?}");
    assert_eq!(world.scene.read("out.txt"), key, "{ran:?}");
}
