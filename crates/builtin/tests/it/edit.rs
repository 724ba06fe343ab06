//! Editing: exact, all or none, and never over somebody else's change.

use convoke_core::{DisplayFormat, ErrorKind};
use serde_json::json;

use crate::support::Workspace;

#[tokio::test]
async fn one_edit_changes_one_place_and_shows_it() {
    let workspace = Workspace::new();
    workspace.write("a.rs", "fn a() {}\nfn b() {}\n");
    let arguments = json!({ "path": "a.rs", "old_string": "fn b()", "new_string": "fn c()" });
    let result = workspace.call("edit_file", arguments).await;
    assert_eq!(workspace.read("a.rs"), "fn a() {}\nfn c() {}\n");
    let value = result.value().unwrap();
    assert_eq!(value["replacements"], 1);
    assert_eq!(
        value["edits"],
        json!([{ "replacements": 1, "line": 2, "whitespaceIgnored": false }])
    );
    let display = result.return_display.unwrap();
    assert_eq!(display.format, DisplayFormat::Diff);
    assert!(display.text.contains("-fn b() {}\n+fn c() {}\n"), "{}", display.text);
}

#[tokio::test]
async fn several_edits_are_all_made_or_none() {
    let workspace = Workspace::new();
    workspace.write("a", "one\ntwo\n");
    let edits = json!([{ "old_string": "one", "new_string": "1" }, { "old_string": "two", "new_string": "2" }]);
    workspace.value("edit_file", json!({ "path": "a", "edits": edits })).await;
    assert_eq!(workspace.read("a"), "1\n2\n");
    let edits =
        json!([{ "old_string": "1", "new_string": "x" }, { "old_string": "3", "new_string": "y" }]);
    let (kind, message) =
        workspace.error("edit_file", json!({ "path": "a", "edits": edits })).await;
    assert_eq!(kind, ErrorKind::Failed);
    assert!(message.contains("edit 2") && message.contains("was not changed"), "{message}");
    assert_eq!(workspace.read("a"), "1\n2\n");
}

#[tokio::test]
async fn ignored_white_space_is_said() {
    let workspace = Workspace::new();
    workspace.write("a.py", "def f():\n    return 1\n");
    let arguments =
        json!({ "path": "a.py", "old_string": "  return 1  ", "new_string": "  return 2" });
    let result = workspace.call("edit_file", arguments).await;
    assert_eq!(workspace.read("a.py"), "def f():\n    return 2\n");
    assert!(result.text().contains("only with white space ignored"), "{}", result.text());
}

#[tokio::test]
async fn wrong_edits_are_explained() {
    let workspace = Workspace::new();
    workspace.write("a", "x\nx\n");
    workspace.write("bin", [0xFF, 0xFE]);
    for (arguments, says) in [
        (
            json!({ "path": "a", "old_string": "x", "new_string": "y" }),
            "occurs 2 times (lines 1, 2)",
        ),
        (json!({ "path": "a", "old_string": "z", "new_string": "y" }), "was not found"),
        (json!({ "path": "a", "old_string": "", "new_string": "y" }), "`old_string` is empty"),
        (json!({ "path": "a", "old_string": "x\nx", "new_string": "x\nx" }), "leave `a` as it is"),
        (json!({ "path": "a", "old_string": "x" }), "`new_string` is missing"),
        (json!({ "path": "a" }), "`old_string` is missing"),
        (json!({ "path": "a", "edits": [] }), "`edits` is empty"),
        (json!({ "path": "a", "edits": [{ "old_string": "x" }] }), "new_string"),
        (json!({ "path": "nope", "old_string": "x", "new_string": "y" }), "not found"),
        (json!({ "path": "bin", "old_string": "x", "new_string": "y" }), "not UTF-8"),
    ] {
        let (_, message) = workspace.error("edit_file", arguments.clone()).await;
        assert!(message.contains(says), "{arguments}: {message}");
    }
    assert_eq!(workspace.read("a"), "x\nx\n");
}
