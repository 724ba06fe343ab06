//! Walking a tree: what cannot be read is said, and what is asked for is what is looked at.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use convoke_core::{Effects, ErrorKind, Resource, ToolCall};
use convoke_tool::{CallOptions, Decided};
use serde_json::{Value, json};

use crate::support::{Workspace, skip};

/// Names the files in an answer, whichever tool gave it.
fn files(value: &Value) -> Vec<&str> {
    let name = |file: &'_ Value| file.as_str().is_none();
    let files = value["files"].as_array().unwrap().iter();
    files
        .map(|file| if name(file) { file["path"].as_str() } else { file.as_str() }.unwrap())
        .collect()
}

/// Each tool that walks, with arguments that look at everything.
fn walks() -> [(&'static str, Value); 4] {
    [
        ("grep", json!({ "pattern": "x" })),
        ("grep", json!({ "pattern": "nowhere" })),
        ("glob", json!({ "pattern": "*" })),
        ("list_files", json!({ "path": ".", "recursive": true })),
    ]
}

async fn says_what_is_missing(workspace: &Workspace) {
    for (tool, arguments) in walks() {
        let result = workspace.call(tool, arguments).await;
        assert_eq!(result.value().unwrap()["unreadable"], 1, "{tool}");
        let says = "[1 file or directory could not be read; something may be missing here]\n";
        assert!(result.text().ends_with(says), "{tool}: {}", result.text());
    }
}

#[tokio::test]
async fn a_tree_that_is_too_deep_is_said_to_be() {
    let workspace = Workspace::new();
    workspace.write("top", "x\n");
    for (tool, arguments) in walks() {
        let whole = workspace.value(tool, arguments).await;
        assert_eq!(whole.get("unreadable"), None, "{tool}");
    }
    workspace.write(&format!("{}bottom", "d/".repeat(257)), "x\n");
    says_what_is_missing(&workspace).await;
}

#[tokio::test]
async fn a_directory_that_may_not_be_read_is_said_to_be() {
    let workspace = Workspace::new();
    workspace.write("top", "x\n");
    workspace.write("closed/secret", "x\n");
    let closed = workspace.path("closed");
    let mode = |mode| std::fs::set_permissions(&closed, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o000);
    if std::fs::read_dir(&closed).is_ok() {
        skip("a directory that may not be read", "this user may read everything");
    } else {
        says_what_is_missing(&workspace).await;
    }
    mode(0o700);
}

#[tokio::test]
async fn a_pattern_that_ends_in_a_slash_means_what_is_below() {
    let workspace = Workspace::new();
    for name in ["src/a.rs", "src/deep/b.rs", "lib/sub/c.rs", "sub/d.rs", "e.rs", "other/sub"] {
        workspace.write(name, "x\n");
    }
    let grep = async |arguments: Value| {
        let found = workspace.value("grep", arguments).await;
        files(&found).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        grep(json!({ "pattern": "x", "include": "src/" })).await,
        ["src/a.rs", "src/deep/b.rs"]
    );
    assert_eq!(grep(json!({ "pattern": "x", "include": "src/deep/" })).await, ["src/deep/b.rs"]);
    assert_eq!(
        grep(json!({ "pattern": "x", "exclude": ["sub/", "src/deep/"] })).await,
        ["e.rs", "other/sub", "src/a.rs"]
    );
    let found = workspace.value("glob", json!({ "pattern": "sub/" })).await;
    assert_eq!(files(&found), ["lib/sub/c.rs", "sub/d.rs"]);
    let listed = workspace.value("ls", json!({ "ignore": ["sub/", "e.rs/"] })).await;
    assert_eq!(files(&listed), ["./e.rs", "./lib", "./other", "./src"]);
    let directories = workspace.value("list_files", json!({ "path": ".", "pattern": "*/" })).await;
    assert_eq!(files(&directories), ["./lib", "./other", "./src", "./sub"]);
}

#[tokio::test]
async fn an_absolute_pattern_has_to_lie_below_the_start() {
    let workspace = Workspace::new();
    workspace.write("a.rs", "x\n");
    workspace.write("src/b.rs", "x\n");
    std::os::unix::fs::symlink("src", workspace.path("link")).unwrap();
    let root = workspace.root().canonicalize().unwrap();
    let absolute = |below: &str| root.join(below).to_str().unwrap().to_owned();
    for (pattern, path, expected) in [
        (absolute("*.rs"), ".", vec!["a.rs"]),
        (absolute("**/*.rs"), ".", vec!["a.rs", "src/b.rs"]),
        (absolute("src/"), ".", vec!["src/b.rs"]),
        (absolute(""), ".", vec!["a.rs", "src/b.rs"]),
        (absolute("src/*.rs"), "src", vec!["src/b.rs"]),
        (absolute("link/*.rs"), "link", vec!["link/b.rs"]),
        (absolute("src/*.rs"), "link", vec!["link/b.rs"]),
    ] {
        let arguments = json!({ "pattern": "x", "include": pattern, "path": path });
        let found = workspace.value("grep", arguments).await;
        assert_eq!(files(&found), expected, "{pattern} in {path}");
    }
    for (tool, arguments) in [
        ("grep", json!({ "pattern": "x", "include": "/etc/*.rs" })),
        ("grep", json!({ "pattern": "x", "exclude": absolute("*.rs"), "path": "src" })),
        ("glob", json!({ "pattern": "/src/*.rs" })),
        ("list_files", json!({ "path": ".", "pattern": "/*" })),
        ("ls", json!({ "ignore": "/tmp" })),
    ] {
        let (kind, message) = workspace.error(tool, arguments).await;
        assert_eq!(kind, ErrorKind::Validation, "{tool}: {message}");
        assert!(message.contains("is not below"), "{tool}: {message}");
    }
}

#[tokio::test]
async fn an_ignore_file_may_begin_with_a_byte_order_mark() {
    let workspace = Workspace::new();
    workspace.write(".gitignore", "\u{feff}secret\nother\n");
    workspace.write("secret", "x\n");
    workspace.write("other", "x\n");
    let found = workspace.value("glob", json!({ "pattern": "*" })).await;
    assert_eq!(files(&found), [".gitignore"]);
}

#[tokio::test]
async fn only_the_first_lines_of_an_ignore_file_count() {
    let workspace = Workspace::new();
    workspace.write("first", "");
    workspace.write("last", "");
    for (filler, lines) in [("x\n", 5000), ("0123456789abcdef\n", 4000)] {
        workspace.write(".gitignore", format!("first\n{}last\n", filler.repeat(lines)));
        let found = workspace.value("glob", json!({ "pattern": "*" })).await;
        assert_eq!(files(&found), [".gitignore", "last"], "{lines} lines");
    }
    // The limit falls into a pattern; half of it would name the other file.
    let filler = "#".repeat(64 * 1024 - "first\n\nla".len());
    workspace.write(".gitignore", format!("first\n{filler}\nlast\n"));
    workspace.write("la", "");
    let found = workspace.value("glob", json!({ "pattern": "*" })).await;
    assert_eq!(files(&found), [".gitignore", "la", "last"]);
}

#[tokio::test]
async fn hostile_ignore_files_do_not_take_long() {
    for pattern in
        ["*a*b*c*d*", "**/a/**/b*", "[!a]?[!b]*", "{a,b}{c,d}{e,f}*", "{a*,{b*,{c*,d*}}}"]
    {
        let workspace = Workspace::new();
        let lines: Vec<String> = (0..20_000).map(|number| format!("{pattern}{number}")).collect();
        workspace.write(".gitignore", lines.join("\n"));
        for number in 0..50 {
            workspace.write(&format!("abcdabcdabcdabcdabcd{number}.txt"), "x\n");
        }
        let begin = Instant::now();
        workspace.value("glob", json!({ "pattern": "*" })).await;
        assert!(begin.elapsed() < Duration::from_secs(10), "{pattern}: {:?}", begin.elapsed());
    }
}

#[tokio::test]
async fn a_call_without_a_path_reads_the_working_directory() {
    let workspace = Workspace::new();
    for (tool, mut arguments) in [
        ("ls", json!({})),
        ("glob", json!({ "pattern": "*" })),
        ("grep", json!({ "pattern": "x" })),
    ] {
        for path in [None, Some("below")] {
            if let Some(path) = path {
                arguments["path"] = json!(path);
            }
            let call = ToolCall::new("c", tool, arguments.clone());
            let Decided::Ready(prepared) =
                workspace.executor.prepare(call, CallOptions::default()).await
            else {
                unreachable!("{tool} may run");
            };
            let read = Resource::Path(path.unwrap_or(".").to_owned());
            assert_eq!(*prepared.effects(), Effects { reads: vec![read], writes: Vec::new() });
        }
    }
}

#[tokio::test]
async fn what_is_hidden_is_in_no_listing_and_in_no_search() {
    let workspace = Workspace::hiding(&[".ssh", "work/.netrc"]);
    for name in [".ssh/id", ".ssh/deep/id", "work/.netrc", "work/plain.txt"] {
        workspace.write(name, "needle");
    }
    for (tool, arguments) in [
        ("ls", json!({})),
        ("list_files", json!({ "path": ".", "recursive": true })),
        ("glob", json!({ "pattern": "**/*" })),
        ("grep", json!({ "pattern": "needle" })),
        ("list_files", json!({ "path": "work" })),
    ] {
        let result = workspace.call(tool, arguments.clone()).await;
        let seen = format!("{:?} {}", result.value(), result.text());
        assert!(result.success() && seen.contains("work") || seen.contains("plain.txt"), "{seen}");
        assert!(!seen.contains(".ssh") && !seen.contains(".netrc"), "{tool} {arguments}: {seen}");
        assert!(result.text().contains("could not be read"), "it is said: {seen}");
    }
}
