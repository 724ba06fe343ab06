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

/// What a file is after one edit, and what was said.
async fn edited(file: &str, old: &str, new: &str) -> (String, String) {
    let workspace = Workspace::new();
    workspace.write("a", file);
    let arguments = json!({ "path": "a", "old_string": old, "new_string": new });
    let text = workspace.call("edit_file", arguments).await.text();
    (workspace.read("a"), text)
}

#[tokio::test]
async fn a_file_cannot_be_doubled_without_end() {
    let workspace = Workspace::new();
    workspace.write("a", "a");
    let double = json!({ "old_string": "a", "new_string": "aa", "replace_all": true });
    let edits = vec![double; 40];
    let (kind, message) =
        workspace.error("edit_file", json!({ "path": "a", "edits": edits })).await;
    assert_eq!(kind, ErrorKind::Failed);
    assert!(message.contains("edit 25: ") && message.contains("16777216"), "{message}");
    assert_eq!(workspace.read("a"), "a");
}

#[tokio::test]
async fn too_many_edits_are_refused() {
    let workspace = Workspace::new();
    workspace.write("a", "a");
    let edit = json!({ "old_string": "a", "new_string": "a" });
    for (count, kind, says) in
        [(1000, ErrorKind::Failed, "leave `a` as it is"), (1001, ErrorKind::Validation, "`edits`")]
    {
        let arguments = json!({ "path": "a", "edits": vec![edit.clone(); count] });
        let (actual, message) = workspace.error("edit_file", arguments).await;
        assert_eq!(actual, kind, "{message}");
        assert!(message.contains(says), "{message}");
    }
}

#[tokio::test]
async fn relative_indentation_is_kept_or_the_edit_is_refused() {
    let file = "def f():\n    if x:\n        a()\n    b()\n";
    let (text, _) =
        edited(file, "            a()\n        b()", "            c()\n        d()").await;
    assert_eq!(text, "def f():\n    if x:\n        c()\n    d()\n");
    for (old, new) in [
        // The last line of the new text is left of everything in the old one.
        ("        if x:\n            a()", "        if x:\n            c()\n    d()"),
        // The old lines are not the file's, moved by the same amount.
        ("if x:\n  a() ", "if x:\n  c()"),
        ("if x: \n        a()", "if x:\n        c()"),
        // Tabs below spaces.
        ("b() ", "b()\n\tc()"),
    ] {
        let (text, said) = edited(file, old, new).await;
        assert_eq!(text, file, "{old:?}");
        assert!(said.contains("was not found") && said.contains("indentation"), "{said}");
    }
}

#[tokio::test]
async fn newlines_around_an_inexact_text_stay_as_they_were_meant() {
    let file = "a\nfoo\nz\n";
    for (old, new, after) in [
        ("foo \n", "bar\n\n", "a\nbar\n\nz\n"),
        ("\nfoo \n", "\nbar\n", "a\nbar\nz\n"),
        ("\n\nfoo \n\n", "\n\nbar\n\n", "a\nbar\nz\n"),
        ("foo ", "\nbar", "a\n\nbar\nz\n"),
        ("foo ", "bar\n\n\nbaz", "a\nbar\n\n\nbaz\nz\n"),
        ("foo \n", "bar", "a\nbar\nz\n"),
        ("foo \n", "", "a\nz\n"),
        ("\nfoo ", "", "a\nz\n"),
        ("foo \n", "\n", "a\n\nz\n"),
        ("foo ", "", "a\n\nz\n"),
    ] {
        assert_eq!(edited(file, old, new).await.0, after, "{old:?} to {new:?}");
    }
    let spaced = "a\n\nfoo\n\nz\n";
    assert_eq!(edited(spaced, "\n\nfoo \n\n", "\nbar\n").await.0, "a\nbar\nz\n");
    assert_eq!(edited(file, "\n\nfoo \n\n", "\nbar\n").await.0, file, "no blank lines to remove");
}

#[tokio::test]
async fn every_inexact_place_is_replaced_if_all_are_meant() {
    let workspace = Workspace::new();
    workspace.write("a", "x \ny\n    x\nx");
    let arguments =
        json!({ "path": "a", "old_string": " x  ", "new_string": " z", "replace_all": true });
    let value = workspace.value("edit_file", arguments).await;
    assert_eq!(workspace.read("a"), "z\ny\n    z\nz");
    assert_eq!(value["replacements"], 3);
    assert_eq!(
        value["edits"],
        json!([{ "replacements": 3, "line": 1, "whitespaceIgnored": true }])
    );
}

#[tokio::test]
async fn inexact_places_cannot_grow_a_file_without_end() {
    let workspace = Workspace::new();
    let file = format!("{}x\n", " ".repeat(1_000_000));
    workspace.write("a", &file);
    let new = "y\n".repeat(1000);
    let arguments = json!({ "path": "a", "old_string": "x ", "new_string": new });
    let (_, message) = workspace.error("edit_file", arguments).await;
    assert!(message.contains("16777216"), "{message}");
    assert_eq!(workspace.read("a"), file);
}

#[tokio::test]
async fn many_occurrences_are_counted_quickly() {
    let workspace = Workspace::new();
    workspace.write("a", "x\n".repeat(500_000));
    let started = std::time::Instant::now();
    let arguments = json!({ "path": "a", "old_string": "x", "new_string": "y" });
    let (_, message) = workspace.error("edit_file", arguments).await;
    let says = "occurs 500000 times (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)";
    assert!(message.contains(says), "{message}");
    assert!(started.elapsed() < std::time::Duration::from_secs(5));
}

#[tokio::test]
async fn occurrences_that_overlap_are_several() {
    let (text, said) = edited("}\n}\n}\n", "}\n}\n", "}\n").await;
    assert_eq!(text, "}\n}\n}\n");
    assert!(said.contains("occurs 2 times (lines 1, 2)"), "{said}");
    let (_, said) = edited("éééé", "ééé", "x").await;
    assert!(said.contains("occurs 2 times (lines 1, 1)"), "{said}");
}

#[tokio::test]
async fn line_ends_follow_the_file_without_a_word() {
    let file = "a\r\nb\r\nc\r\n";
    for (old, new, after) in [
        ("b", "b\nB", "a\r\nb\r\nB\r\nc\r\n"),
        ("a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n"),
        ("\nb", "\nx\nb", "a\r\nx\r\nb\r\nc\r\n"),
        ("a\r\nb", "x\ny\r\nz", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb", "a\nb", "a\nb\r\nc\r\n"),
    ] {
        let (text, said) = edited(file, old, new).await;
        assert_eq!(text, after, "{old:?} to {new:?}");
        assert!(!said.contains("white space"), "{said}");
    }
    let (text, said) = edited("a\r\n  b\nc\r\n", "a\n  b\n", "x\n  y\n").await;
    assert_eq!(text, "x\r\n  y\nc\r\n");
    assert!(!said.contains("white space"), "{said}");
    let (text, said) = edited("a\n  b\nc\n", "a\r\n  b\r\n", "x\r\n  y\r\n  z\r\n").await;
    assert_eq!(text, "x\n  y\n  z\nc\n");
    assert!(!said.contains("white space"), "{said}");
    let (text, _) = edited("a\r\n  b", "b ", "b\nc").await;
    assert_eq!(text, "a\r\n  b\r\n  c");
}

#[tokio::test]
async fn other_names_are_taken_only_at_the_top() {
    let workspace = Workspace::new();
    workspace.write("a", "x");
    workspace.value("edit_file", json!({ "path": "a", "old_text": "x", "new_text": "y" })).await;
    assert_eq!(workspace.read("a"), "y");
    let edits = json!([{ "old_text": "y", "new_text": "z" }]);
    let (kind, message) =
        workspace.error("edit_file", json!({ "path": "a", "edits": edits })).await;
    assert_eq!(kind, ErrorKind::Validation);
    assert!(message.contains("old_string"), "{message}");
}
