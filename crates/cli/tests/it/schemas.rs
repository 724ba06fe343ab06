//! The schemas in the repository are those of the code, and what is printed fits them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::Scene;

const NAMES: [&str; 4] =
    ["config.schema.json", "events.schema.json", "report.schema.json", "result.schema.json"];

fn committed(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn committed_schemas_are_up_to_date() {
    let scene = Scene::new();
    assert_eq!(scene.run(&["config", "schema", "--all", "--dir", "schemas"]).code, Some(0));
    for name in NAMES {
        assert_eq!(
            committed(name),
            scene.read(&format!("schemas/{name}")),
            "{name} is out of date: run `convoke config schema --all --dir schemas`"
        );
    }
    assert_eq!(scene.stdout(&["config", "schema"]), committed("config.schema.json"));
}

#[test]
fn results_fit_their_schema() {
    let schema: Value = serde_json::from_str(&committed("result.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let scene = Scene::new().file("a.txt", "one\n");
    for words in [
        &["ls"][..],
        &["grep", "--arg", "pattern=one"],
        &["edit_file", "--arg", "path=a.txt", "--arg", "old_string=one", "--arg", "new_string=1"],
        &["read_file", "--arg", "path=missing"],
        &["read_file", "{}"],
        &["nothing"],
        &["run_command", "--arg", "command=ls"],
        &["run_command", "--allow", "execute", "--arg", "command=echo x; exit 1"],
        &["sleep", "{\"duration\": 60}", "--timeout", "1ms"],
    ] {
        let result = scene.json(&[&["tools", "call", "--json"], words].concat());
        let mistakes: Vec<String> =
            validator.iter_errors(&result).map(|error| error.to_string()).collect();
        assert!(mistakes.is_empty(), "{words:?}: {mistakes:?}");
    }
}

#[test]
fn all_schemas_are_schemas() {
    for name in NAMES {
        let schema: Value = serde_json::from_str(&committed(name)).unwrap();
        assert!(jsonschema::validator_for(&schema).is_ok(), "{name}");
    }
}
