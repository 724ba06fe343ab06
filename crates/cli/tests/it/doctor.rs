//! Whether the doctor finds what is wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::Scene;

fn state(checks: &Value, name: &str) -> String {
    let checks = checks.as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name);
    check.unwrap_or_else(|| panic!("{name} in {checks:?}"))["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_healthy_place_is_in_order() {
    let scene = Scene::new().variable("ANTHROPIC_API_KEY", "sk-secret-word");
    let ran = scene.run(&["doctor"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in [
        "ok    configuration  no files, built-in values\n",
        "ok    trust          there is no project file to trust\n",
        "ok    allowed paths  [root]/home/project\n",
    ] {
        let narrow = line.replacen("ok    ", "ok  ", 1);
        assert!(ran.stdout.contains(line) || ran.stdout.contains(&narrow), "{}", ran.stdout);
    }
    let checks = scene.json(&["doctor", "--json"]);
    for name in ["version", "directory", "user files", "confinement", "shell", "model", "terminal"]
    {
        assert_eq!(state(&checks, name), "ok", "{name}");
    }
}

/// What cannot be told of a test: whether its temporary directory is in memory.
fn kept(scene: &Scene, words: &[&str]) -> (String, Value) {
    let checks = scene.json(&[&["doctor", "--json"], words].concat());
    let checks = checks.as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "state").unwrap();
    (check["message"].as_str().unwrap().to_owned(), check["details"].clone())
}

#[test]
fn the_place_where_runs_are_kept_is_looked_at() {
    let scene = Scene::new();
    let state = scene.root().join("state");
    let flag = ["--state", state.to_str().unwrap()];
    let (message, details) = kept(&scene, &flag);
    assert_eq!((&details["exists"], &details["writable"]), (&json!(false), &json!(true)));
    assert!(!state.exists(), "looking makes nothing: {message}");

    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    let (message, details) = kept(&scene, &flag);
    assert!(message.contains("can be looked into by other users"), "{message}");
    assert_eq!(details["open"], json!(["[root]/state"]), "{details}");
    assert_eq!(details["ours"], true);
    assert!(details["freeBytes"].as_u64().unwrap() > 0, "{details}");
    let ran = scene.run(&["doctor", flag[0], flag[1]]);
    assert!(ran.stdout.contains("warn") && ran.stdout.contains("chmod 700"), "{ran:?}");
    assert_eq!(ran.code, Some(0), "{ran:?}");

    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    let (message, details) = kept(&scene, &flag);
    assert_eq!(details["open"], json!([]), "{message}");
    fs::remove_dir(&state).unwrap();
    fs::write(&state, "").unwrap();
    let (message, _) = kept(&scene, &flag);
    assert!(message.ends_with("cannot be used: it is a file"), "{message}");
}

#[test]
fn a_strange_project_is_worth_a_look() {
    let scene = Scene::new().file("convoke.yml", "tools: {http: {allowPrivate: true}}\n");
    let checks = scene.json(&["doctor", "--json"]);
    assert_eq!(state(&checks, "trust"), "warn");
    assert_eq!(state(&checks, "configuration"), "warn");
    assert_eq!(scene.run(&["doctor"]).code, Some(0));
}

#[test]
fn a_wrong_configuration_is_a_failure() {
    let scene = Scene::new().user("nonsense: 1\n");
    let ran = scene.run(&["doctor"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(ran.stdout.contains("Something does not work: 1."), "{ran:?}");
    let scene = Scene::new().user("tools: {allowedPaths: [/nowhere/at/all]}\n");
    assert_eq!(scene.run(&["doctor"]).code, Some(7));
    assert_eq!(state(&scene.json(&["doctor", "--json"]), "allowed paths"), "fail");
}

#[test]
fn a_place_without_programs_is_a_failure() {
    let scene = Scene::new().variable("PATH", "/nowhere");
    let checks = scene.json(&["doctor", "--json"]);
    assert_eq!(state(&checks, "shell"), "fail");
    assert_eq!(state(&checks, "git"), "warn");
    assert_eq!(scene.run(&["doctor"]).code, Some(1));
}

/// A scene in which no server on this machine can be found.
fn nobody_home() -> Scene {
    let closed = "{baseUrl: 'http://127.0.0.1:1/v1'}";
    let providers = format!("{{ollama: {closed}, llamacpp: {closed}, lmstudio: {closed}}}");
    Scene::new().user(&format!("model: {{providers: {providers}}}\n"))
}

fn model(scene: &Scene) -> Value {
    let checks = scene.json(&["doctor", "--json"]);
    let checks = checks.as_array().unwrap();
    checks.iter().find(|check| check["name"] == "model").unwrap().clone()
}

#[test]
fn the_model_that_would_be_asked_is_named_with_the_reason() {
    let scene = Scene::new().variable("ANTHROPIC_API_KEY", "sk-secret-word");
    let ran = scene.run(&["doctor"]);
    assert!(ran.stdout.contains("its key is from `ANTHROPIC_API_KEY`"), "{}", ran.stdout);
    assert!(!ran.shown().contains("sk-secret-word"), "{ran:?}");
    let check = model(&scene);
    assert!(check["details"]["model"].as_str().unwrap().starts_with("anthropic/"), "{check}");
    assert_eq!((&check["state"], &check["details"]["hasKey"]), (&json!("ok"), &json!(true)));
    assert!(check["details"]["answers"].is_null(), "nobody outside is asked: {check}");
}

#[test]
fn a_place_without_a_model_is_worth_a_look() {
    let scene = nobody_home();
    let check = model(&scene);
    assert_eq!((&check["state"], &check["details"]["model"]), (&json!("warn"), &Value::Null));
    assert!(check["hints"].to_string().contains("convoke demo"), "{check}");
    assert_eq!(scene.run(&["doctor"]).code, Some(0));
    let scene = nobody_home().variable("CONVOKE__MODEL__DEFAULT", "anthropic/claude-x");
    let check = model(&scene);
    assert_eq!(check["state"], "fail", "{check}");
    assert!(check["hints"].to_string().contains("ANTHROPIC_API_KEY"), "{check}");
    assert_eq!(scene.run(&["doctor"]).code, Some(7));
}

#[test]
fn a_server_on_this_machine_is_asked_whether_it_is_there() {
    let scene = nobody_home().variable("CONVOKE__MODEL__DEFAULT", "ollama/some-model");
    let check = model(&scene);
    assert_eq!((&check["state"], &check["details"]["answers"]), (&json!("warn"), &json!(false)));
    assert!(
        check["message"].as_str().unwrap().contains("needs no key; its server does not answer"),
        "{check}"
    );
}
