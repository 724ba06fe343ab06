//! Whether the doctor finds what is wrong.

use serde_json::Value;

use crate::support::Scene;

fn state(checks: &Value, name: &str) -> String {
    let checks = checks.as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name);
    check.unwrap_or_else(|| panic!("{name} in {checks:?}"))["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_healthy_place_is_in_order() {
    let scene = Scene::new();
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
    for name in ["version", "directory", "user files", "confinement", "shell", "terminal"] {
        assert_eq!(state(&checks, name), "ok", "{name}");
    }
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
