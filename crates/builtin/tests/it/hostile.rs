//! Input made to do harm: each has a clear answer, soon.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

use convoke_builtin::Settings;
use convoke_core::ErrorKind;
use convoke_tool::CallOptions;
use serde_json::{Value, json};

use crate::support::{Workspace, executor, skip};

/// Every tool that takes a path, with arguments in which `P` stands for it.
const PATH_TOOLS: [(&str, &str); 12] = [
    ("read_file", r#"{"path":"P"}"#),
    ("write_file", r#"{"path":"P","content":"x"}"#),
    ("edit_file", r#"{"path":"P","old_string":"a","new_string":"b"}"#),
    ("list_files", r#"{"path":"P"}"#),
    ("ls", r#"{"path":"P"}"#),
    ("delete_file", r#"{"path":"P"}"#),
    ("move_file", r#"{"from":"P","to":"elsewhere"}"#),
    ("move_file", r#"{"from":"here","to":"P"}"#),
    ("get_file_info", r#"{"path":"P"}"#),
    ("grep", r#"{"path":"P","pattern":"x"}"#),
    ("glob", r#"{"path":"P","pattern":"*"}"#),
    ("run_command", r#"{"working_directory":"P","command":"pwd"}"#),
];

fn arguments(template: &str, path: &str) -> Value {
    let quoted = serde_json::to_string(path).unwrap();
    serde_json::from_str(&template.replace("\"P\"", &quoted)).unwrap()
}

#[tokio::test]
async fn no_tool_leaves_the_roots() {
    let workspace = Workspace::new();
    workspace.write("here", "x");
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "a").unwrap();
    symlink(outside.path(), workspace.path("out")).unwrap();
    symlink(outside.path().join("secret"), workspace.path("leak")).unwrap();
    symlink("../..", workspace.path("up")).unwrap();
    let absolute = outside.path().join("secret");
    let paths = [
        "../secret",
        "/etc/passwd",
        "out/secret",
        "out",
        "up/etc",
        "a/../../b",
        absolute.to_str().unwrap(),
    ];
    for (tool, template) in PATH_TOOLS {
        for path in paths {
            let removes_the_link = tool == "delete_file" || tool == "move_file";
            if path == "out" && removes_the_link {
                continue;
            }
            let (kind, message) = workspace.error(tool, arguments(template, path)).await;
            assert_eq!(kind, ErrorKind::Permission, "{tool} {path}: {message}");
            assert!(message.contains("Access denied"), "{tool} {path}: {message}");
        }
    }
    let (kind, _) = workspace.error("read_file", json!({ "path": "leak" })).await;
    assert_eq!(kind, ErrorKind::Permission);
    let (kind, _) = workspace.error("write_file", json!({ "path": "leak", "content": "x" })).await;
    assert_eq!(kind, ErrorKind::Permission);
    assert_eq!(std::fs::read_to_string(&absolute).unwrap(), "a");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn strange_paths_are_refused_by_every_tool() {
    let workspace = Workspace::new();
    workspace.write("here", "x");
    for (tool, template) in PATH_TOOLS {
        for path in ["", "a\0b"] {
            let (kind, message) = workspace.error(tool, arguments(template, path)).await;
            assert_eq!(kind, ErrorKind::Validation, "{tool} {path:?}: {message}");
        }
        let wrong = template.replace("\"P\"", "17");
        let (kind, message) = workspace.error(tool, serde_json::from_str(&wrong).unwrap()).await;
        assert_eq!(kind, ErrorKind::Validation, "{tool}: {message}");
        let nested = template.replace("\"P\"", &format!("{}1{}", "[".repeat(100), "]".repeat(100)));
        let (kind, message) = workspace.error(tool, serde_json::from_str(&nested).unwrap()).await;
        assert_eq!(kind, ErrorKind::Validation, "{tool}: {message}");
        let huge = "x".repeat(10 * 1024 * 1024);
        let (kind, message) = workspace.error(tool, arguments(template, &huge)).await;
        assert_eq!(kind, ErrorKind::Validation, "{tool}");
        assert!(message.contains("the limit is 4194304"), "{tool}: {message}");
    }
}

#[tokio::test]
async fn names_that_are_not_utf8_are_listed_and_do_no_harm() {
    use std::os::unix::ffi::OsStrExt;
    let workspace = Workspace::new();
    let name = std::ffi::OsStr::from_bytes(b"bad-\xFF-name");
    std::fs::write(workspace.root().join(name), "needle").unwrap();
    let listed = workspace.value("ls", json!({})).await;
    assert_eq!(listed["files"][0]["name"], "bad-\u{FFFD}-name");
    let found = workspace.value("grep", json!({ "pattern": "needle" })).await;
    assert_eq!(found["total"], 1);
    assert_eq!(
        workspace.error("read_file", json!({ "path": "bad-\u{FFFD}-name" })).await.0,
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn pipes_and_devices_are_refused_without_waiting() {
    let workspace = Workspace::new();
    let pipe = workspace.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let started = Instant::now();
    for (tool, arguments) in [
        ("read_file", json!({ "path": "pipe" })),
        ("edit_file", json!({ "path": "pipe", "old_string": "a", "new_string": "b" })),
        ("write_file", json!({ "path": "pipe", "content": "x" })),
        ("grep", json!({ "path": "pipe", "pattern": "x" })),
    ] {
        let (_, message) = workspace.error(tool, arguments).await;
        assert!(message.contains("not a regular file"), "{tool}: {message}");
    }
    assert_eq!(workspace.value("grep", json!({ "pattern": "x" })).await["total"], 0);
    let devices =
        executor(&[std::path::Path::new("/dev")], &Settings::default(), std::sync::Arc::default());
    for device in ["zero", "random", "tty"] {
        let call = convoke_core::ToolCall::new(device, "read_file", json!({ "path": device }));
        assert!(!devices.execute(call).await.success(), "{device}");
    }
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_directory_is_not_a_file_and_a_file_is_not_a_directory() {
    let workspace = Workspace::new();
    workspace.write("dir/file", "x");
    for (tool, arguments, says) in [
        ("read_file", json!({ "path": "dir" }), "a directory"),
        ("write_file", json!({ "path": "dir", "content": "" }), "a directory"),
        (
            "edit_file",
            json!({ "path": "dir", "old_string": "a", "new_string": "b" }),
            "a directory",
        ),
        ("read_file", json!({ "path": "dir/file/x" }), "not a directory"),
        ("write_file", json!({ "path": "dir/file/x", "content": "" }), "not a directory"),
        ("write_file", json!({ "path": ".", "content": "" }), "root itself"),
    ] {
        let (kind, message) = workspace.error(tool, arguments.clone()).await;
        let expected =
            if says == "not a directory" { ErrorKind::NotFound } else { ErrorKind::Failed };
        assert_eq!(kind, expected, "{tool} {arguments}: {message}");
        assert!(message.contains(says), "{tool} {arguments}: {message}");
    }
}

#[tokio::test]
async fn what_the_system_forbids_is_said() {
    let workspace = Workspace::new();
    workspace.write("locked/file", "x");
    std::fs::set_permissions(workspace.path("locked"), std::fs::Permissions::from_mode(0o000))
        .unwrap();
    if std::fs::read_dir(workspace.path("locked")).is_ok() {
        skip("files nobody may read", "this user may read everything");
    } else {
        let (kind, message) = workspace.error("read_file", json!({ "path": "locked/file" })).await;
        assert_eq!(kind, ErrorKind::Permission);
        assert!(message.contains("the operating system refused to read"), "{message}");
    }
    std::fs::set_permissions(workspace.path("locked"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
}

#[tokio::test]
async fn a_file_that_grows_while_it_is_read_ends() {
    let workspace =
        Workspace::with(&Settings { max_read_bytes: 1024 * 1024, ..Settings::default() });
    workspace.write("log", "start\n");
    let path = workspace.path("log");
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = std::sync::Arc::clone(&stop);
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        let mut written = 0;
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) && written < 64 * 1024 * 1024 {
            file.write_all(&[b'x'; 4096]).unwrap();
            written += 4096;
        }
    });
    for _ in 0..50 {
        let value = workspace.value("read_file", json!({ "path": "log" })).await;
        let content = value["content"].as_str().unwrap();
        assert!(content.starts_with("start\n") && content.len() <= 1024 * 1024);
        assert!(value["size"].as_u64().unwrap() >= content.len() as u64);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
}

#[tokio::test]
async fn a_file_of_five_gigabytes_is_read_in_part_and_given_up_in_time() {
    let workspace = Workspace::with(&Settings { max_read_bytes: 64 * 1024, ..Settings::default() });
    let file = std::fs::File::create(workspace.path("huge")).unwrap();
    file.set_len(5 * 1024 * 1024 * 1024).unwrap();
    let value = workspace.value("read_file", json!({ "path": "huge" })).await;
    assert_eq!(value["truncated"], true);
    assert_eq!(value["size"], 5_368_709_120_u64);
    assert_eq!(value["content"].as_str().unwrap().len(), 64 * 1024);
    let started = Instant::now();
    let options = CallOptions::timeout(Duration::from_millis(100));
    let far =
        workspace.call_with("read_file", json!({ "path": "huge", "offset": 1000 }), options).await;
    assert!(
        far.error_kind() == Some(ErrorKind::Timeout) || far.text().contains("lines"),
        "{}",
        far.text()
    );
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(workspace.value("grep", json!({ "pattern": "x" })).await["total"], 0);
    assert!(
        workspace
            .error("edit_file", json!({ "path": "huge", "old_string": "a", "new_string": "b" }))
            .await
            .1
            .contains("too long")
    );
}

#[tokio::test]
async fn a_tree_that_is_too_deep_ends() {
    let workspace = Workspace::new();
    let mut path = workspace.root().to_path_buf();
    for _ in 0..300 {
        path.push("d");
        std::fs::create_dir(&path).unwrap();
    }
    workspace.write("top", "needle");
    assert_eq!(workspace.value("grep", json!({ "pattern": "needle" })).await["total"], 1);
    assert_eq!(workspace.value("glob", json!({ "pattern": "top" })).await["files"], json!(["top"]));
}

#[tokio::test]
async fn a_link_to_a_parent_does_not_make_a_walk_endless() {
    let workspace = Workspace::new();
    workspace.write("a/b", "needle");
    symlink("..", workspace.path("a/up")).unwrap();
    assert_eq!(workspace.value("grep", json!({ "pattern": "needle" })).await["total"], 1);
    let listed = workspace.value("list_files", json!({ "path": ".", "recursive": true })).await;
    assert_eq!(listed["files"].as_array().unwrap().len(), 3);
}

/// Reading one goes down into its braces by calling itself, and once ended the process.
#[tokio::test]
async fn a_pattern_that_is_too_much_is_refused_and_in_a_file_passed_over() {
    let workspace = Workspace::new();
    workspace.write("kept.txt", "x\n");
    workspace.write("left.log", "x\n");
    let deep = format!("{}a{}", "{".repeat(30_000), "}".repeat(30_000));
    for pattern in [deep.clone(), "?".repeat(1_000_000), "{[}]".repeat(20_000)] {
        for (tool, arguments) in [
            ("glob", json!({ "pattern": pattern })),
            ("grep", json!({ "pattern": "x", "include": pattern })),
            ("grep", json!({ "pattern": "x", "exclude": [pattern] })),
        ] {
            let (kind, message) = workspace.error(tool, arguments).await;
            assert_eq!(kind, ErrorKind::Validation, "{tool}: {message}");
        }
    }
    let many: Vec<String> = (0..300).map(|number| format!("{number}*")).collect();
    let (kind, message) = workspace.error("grep", json!({ "pattern": "x", "include": many })).await;
    assert_eq!(kind, ErrorKind::Validation, "{message}");
    workspace.write(".gitignore", format!("{deep}\n*.log\n"));
    let found = workspace.value("grep", json!({ "pattern": "x" })).await;
    assert_eq!(found["files"][0]["path"], "kept.txt", "{found}");
    assert_eq!(found["total"], 1, "{found}");
}
