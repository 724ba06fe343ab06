//! Finding files: what is found, what is passed over, and in which order.

use convoke_core::ErrorKind;
use serde_json::{Value, json};

use crate::support::Workspace;

fn project() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("src/main.rs", "fn main() {\n    // TODO: auth\n    login();\n}\n");
    workspace.write("src/auth.rs", "pub fn login() {}\npub fn Auth() {}\n");
    workspace.write("docs/auth.md", "# Auth\nHow to log in.\n");
    workspace.write(".github/ci.yml", "auth: true\n");
    workspace.write("target/out.rs", "auth\n");
    workspace.write("src/gen/x.rs", "auth\n");
    workspace.write("src/gen/keep.rs", "auth\n");
    workspace.write("image.bin", b"auth\0auth\n");
    workspace.write(".git/config", "auth\n");
    workspace.write(".gitignore", "/target\n# a comment\n");
    workspace.write("src/.gitignore", "gen/*\n!gen/keep.rs\n");
    workspace
}

fn paths(value: &Value) -> Vec<&str> {
    value["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn grep_finds_lines_in_the_order_of_paths() {
    let workspace = project();
    let found = workspace.value("grep", json!({ "pattern": "auth" })).await;
    assert_eq!(paths(&found), [".github/ci.yml", "src/gen/keep.rs", "src/main.rs"]);
    assert_eq!(
        found["files"][2]["lines"],
        json!([{ "line": 2, "text": "    // TODO: auth", "match": true }])
    );
    assert_eq!((&found["total"], &found["truncated"]), (&json!(3), &json!(false)));
    let text = workspace.call("grep", json!({ "pattern": "login" })).await.text();
    assert_eq!(text, "src/auth.rs\n1: pub fn login() {}\n\nsrc/main.rs\n3:     login();\n");
}

#[tokio::test]
async fn grep_takes_filters_and_modes() {
    let workspace = project();
    let grep = async |arguments: Value| workspace.value("grep", arguments).await;
    let insensitive =
        grep(json!({ "pattern": "AUTH", "case_sensitive": false, "type": "md" })).await;
    assert_eq!(paths(&insensitive), ["docs/auth.md"]);
    let included =
        grep(json!({ "pattern": "auth|Auth", "include": "*.rs", "exclude": ["src/gen"] })).await;
    assert_eq!(paths(&included), ["src/auth.rs", "src/main.rs"]);
    let literal = grep(json!({ "pattern": "login()", "literal": true, "path": "src" })).await;
    assert_eq!(paths(&literal), ["src/auth.rs", "src/main.rs"]);
    let files =
        workspace.call("grep", json!({ "pattern": "auth", "mode": "files", "path": "src" })).await;
    assert_eq!(files.text(), "src/gen/keep.rs\nsrc/main.rs\n");
    let counts = workspace.call("grep", json!({ "pattern": "fn", "mode": "count" })).await;
    assert_eq!(counts.text(), "src/auth.rs: 2\nsrc/main.rs: 1\n");
    let ignored =
        grep(json!({ "pattern": "auth", "include_ignored": true, "mode": "files" })).await;
    assert_eq!(paths(&ignored).len(), 6, "{ignored}");
    let one = grep(json!({ "pattern": "login", "path": "src/auth.rs" })).await;
    assert_eq!(paths(&one), ["src/auth.rs"]);
    assert_eq!(grep(json!({ "pattern": "zzz" })).await["total"], 0);
}

#[tokio::test]
async fn grep_shows_context() {
    let workspace = Workspace::new();
    workspace.write("a", "1\n2\nx\n4\n5\n6\n7\nx\n9\n");
    let text = workspace.call("grep", json!({ "pattern": "x", "context": 1 })).await.text();
    assert_eq!(text, "a\n2- 2\n3: x\n4- 4\n--\n7- 7\n8: x\n9- 9\n");
}

#[tokio::test]
async fn lines_around_a_match_that_is_left_out_are_not_shown() {
    let workspace = Workspace::new();
    let lines = |matches: [u32; 2]| {
        let line = |number| if matches.contains(&number) { "x".into() } else { number.to_string() };
        (1..=20).map(line).collect::<Vec<String>>().join("\n")
    };
    workspace.write("a", lines([2, 8]));
    let grep = async |path: &str, max_matches: u32| {
        let arguments =
            json!({ "pattern": "x", "context": 3, "max_matches": max_matches, "path": path });
        workspace.call("grep", arguments).await.text()
    };
    let more = "[there are more matches; narrow the search, or raise `max_matches`]\n";
    let first = "a\n1- 1\n2: x\n3- 3\n4- 4\n5- 5\n";
    assert_eq!(grep("a", 1).await, format!("{first}{more}"));
    // Here the file's own limit is not reached; what is left of it is.
    workspace.write("0", "x");
    assert_eq!(grep(".", 2).await, format!("0\n1: x\n\n{first}{more}"));
    // A match that is left out ends the lines after the one before it.
    workspace.write("b", lines([2, 4]));
    assert_eq!(grep("b", 1).await, format!("b\n1- 1\n2: x\n3- 3\n{more}"));
}

#[tokio::test]
async fn a_file_that_takes_too_much_memory_is_said_to_be_left_out() {
    let workspace = Workspace::new();
    workspace.write("short", "x\n");
    workspace.write("long", "y".repeat(65 * 1024 * 1024));
    let result = workspace.call("grep", json!({ "pattern": "x" })).await;
    assert_eq!(result.value().unwrap()["unreadable"], 1);
    assert!(result.text().contains("[1 file or directory could not be read"), "{}", result.text());
    let (kind, message) = workspace.error("grep", json!({ "pattern": "x", "path": "long" })).await;
    assert_eq!((kind, message.as_str()), (ErrorKind::Failed, "the file cannot be read"));
}

#[tokio::test]
async fn a_limit_keeps_the_first_matches_whatever_the_timing() {
    let workspace = Workspace::new();
    for number in 0..300 {
        workspace.write(&format!("d{}/f{number:03}", number % 7), "x\nx\nx\n");
    }
    let mut expected: Vec<String> =
        (0..300).map(|number| format!("d{}/f{number:03}", number % 7)).collect();
    expected.sort();
    for _ in 0..20 {
        let found = workspace.value("grep", json!({ "pattern": "x", "max_matches": 10 })).await;
        assert_eq!(paths(&found), &expected[..4]);
        assert_eq!((&found["total"], &found["truncated"]), (&json!(10), &json!(true)));
        assert_eq!(found["files"][3]["lines"].as_array().unwrap().len(), 1);
    }
    let exactly = workspace.value("grep", json!({ "pattern": "x", "max_matches": 900 })).await;
    assert_eq!(exactly["truncated"], json!(false));
}

#[tokio::test]
async fn long_lines_are_cut() {
    let workspace = Workspace::new();
    workspace.write("min.js", format!("{}needle{}", "é".repeat(300), "y".repeat(5000)));
    let found = workspace.value("grep", json!({ "pattern": "needle" })).await;
    let text = found["files"][0]["lines"][0]["text"].as_str().unwrap();
    assert!(text.len() < 450 && text.ends_with(" bytes]"), "{text}");
}

#[tokio::test]
async fn wrong_patterns_are_explained() {
    let workspace = project();
    for (arguments, says) in [
        (json!({ "pattern": "(" }), "`pattern`: regex parse error"),
        (json!({ "pattern": "a\nb" }), "`pattern`"),
        (
            json!({ "pattern": "a", "type": "rst2" }),
            "`rst2` is not a known file type; did you mean `rst`",
        ),
        (json!({ "pattern": "a", "include": "[" }), "`include`"),
        (json!({ "pattern": "a", "mode": "lines" }), "`mode`"),
        (
            json!({ "pattern": "a", "max_matches": 0 }),
            "`max_matches`: 0 is less than the minimum of 1",
        ),
        (
            json!({ "pattern": "a", "max_matches": 100_001 }),
            "`max_matches`: 100001 is greater than the maximum",
        ),
        (json!({ "pattern": "(\\w{1000}){1000}" }), "`pattern`: compiled regex exceeds size limit"),
    ] {
        let (kind, message) = workspace.error("grep", arguments.clone()).await;
        assert_eq!(kind, ErrorKind::Validation, "{arguments}: {message}");
        assert!(message.contains(says), "{arguments}: {message}");
    }
    assert_eq!(
        workspace.error("grep", json!({ "pattern": "a", "path": "nope" })).await.0,
        ErrorKind::NotFound
    );
    assert_eq!(
        workspace.error("glob", json!({ "pattern": "*", "limit": 100_001 })).await.0,
        ErrorKind::Validation
    );
    for pattern in ["[", "", "../*", "a/../b"] {
        let (kind, message) = workspace.error("glob", json!({ "pattern": pattern })).await;
        assert_eq!(kind, ErrorKind::Validation, "{pattern}: {message}");
    }
    assert!(
        workspace
            .error("glob", json!({ "pattern": "*", "path": "image.bin" }))
            .await
            .1
            .contains("is a file")
    );
}

#[tokio::test]
async fn glob_finds_names_and_paths() {
    let workspace = project();
    let glob = async |arguments: Value| workspace.value("glob", arguments).await["files"].clone();
    assert_eq!(
        glob(json!({ "pattern": "*.rs" })).await,
        json!(["src/auth.rs", "src/gen/keep.rs", "src/main.rs"])
    );
    assert_eq!(glob(json!({ "pattern": "src/*.rs" })).await, json!(["src/auth.rs", "src/main.rs"]));
    assert_eq!(
        glob(json!({ "pattern": "**/{auth,ci}.*" })).await,
        json!([".github/ci.yml", "docs/auth.md", "src/auth.rs"])
    );
    assert_eq!(
        glob(json!({ "pattern": "*.rs", "path": "src/gen" })).await,
        json!(["src/gen/keep.rs"])
    );
    let all = workspace.value("glob", json!({ "pattern": "*", "limit": 2 })).await;
    assert_eq!(all, json!({ "files": [".github/ci.yml", ".gitignore"], "truncated": true }));
    assert_eq!(
        glob(json!({ "pattern": "out.rs", "include_ignored": true })).await,
        json!(["target/out.rs"])
    );
}
