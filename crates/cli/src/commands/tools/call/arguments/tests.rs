use convoke_core::Kind;
use serde_json::json;

use super::*;

fn spec() -> ToolSpec {
    let mut spec = ToolSpec::new("t", "", Kind::Read);
    spec.parameters = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string" },
            "count": { "type": "integer" },
            "ratio": { "type": ["number", "null"] },
            "flag": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "sizes": { "type": "array", "items": { "type": "integer" } },
            "map": { "type": "object" },
            "mode": { "enum": ["1", "2"] },
            "either": { "anyOf": [{ "type": "string" }, { "type": "array" }] },
            "any": {},
        },
    })
    .into();
    spec.aliases.insert("n".into(), "count".into());
    spec
}

fn arguments(json: Value, pairs: &[(&str, &str)]) -> Result<Value, Failure> {
    let Value::Object(map) = json else { panic!("an object") };
    let pairs: Vec<(String, String)> =
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    combine(map, &pairs, Some(&spec()), |path| path)
}

#[test]
fn values_become_what_the_schema_asks_for() {
    for (name, text, value) in [
        ("text", "12", json!("12")),
        ("text", "", json!("")),
        ("count", "12", json!(12)),
        ("n", "12", json!(12)),
        ("ratio", "-1.5e3", json!(-1500.0)),
        ("flag", "true", json!(true)),
        ("tags", "a", json!(["a"])),
        ("tags", "[\"a\", \"b\"]", json!(["a", "b"])),
        ("tags", "[broken", json!(["[broken"])),
        ("sizes", "3", json!([3])),
        ("map", "{\"a\": 1}", json!({ "a": 1 })),
        ("mode", "1", json!("1")),
        ("either", "12", json!("12")),
        ("either", "[1]", json!([1])),
        ("any", "12", json!(12)),
        ("any", "word", json!("word")),
        ("unknown", "12", json!(12)),
        ("text", "@@home", json!("@home")),
    ] {
        let made = arguments(json!({}), &[(name, text)]).unwrap();
        assert_eq!(made, json!({ name: value }), "{name}={text}");
    }
}

#[test]
fn what_does_not_fit_stays_text_for_the_check_to_report() {
    for (name, text) in [("count", "many"), ("flag", "yes"), ("map", "[1]"), ("ratio", "\"1\"")] {
        assert_eq!(arguments(json!({}), &[(name, text)]).unwrap(), json!({ name: text }));
    }
}

#[test]
fn single_arguments_win_and_lists_grow() {
    let made = arguments(
        json!({ "text": "json", "tags": ["json"], "flag": true }),
        &[("text", "flag"), ("tags", "a"), ("tags", "b")],
    );
    assert_eq!(made.unwrap(), json!({ "text": "flag", "tags": ["a", "b"], "flag": true }));
    assert!(arguments(json!({}), &[("text", "a"), ("text", "b")]).is_err());
    let several = arguments(json!({}), &[("either", "a"), ("either", "b"), ("either", "c")]);
    assert_eq!(several.unwrap(), json!({ "either": ["a", "b", "c"] }));
}

#[test]
fn files_are_read_and_their_absence_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("list.json");
    files::write(&path, "[1, 2]\n").unwrap();
    let written = format!("@{}", path.display());
    assert_eq!(arguments(json!({}), &[("sizes", &written)]).unwrap(), json!({ "sizes": [1, 2] }));
    assert_eq!(arguments(json!({}), &[("text", &written)]).unwrap(), json!({ "text": "[1, 2]\n" }));
    assert!(arguments(json!({}), &[("text", "@/nowhere/at/all")]).is_err());
}

#[test]
fn arguments_have_to_be_an_object() {
    for text in ["", "nonsense", "[]", "3", "{\"a\":", "null"] {
        assert!(from_json(text).is_err(), "{text}");
    }
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(from_json(&deep).is_err());
}
