//! Files: what each tool promises.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use convoke_builtin::Settings;
use convoke_core::{DisplayFormat, ErrorKind};
use serde_json::{Value, json};

use crate::support::{SmallDisk, Workspace, executor};

#[tokio::test]
async fn reading_gives_content_missing_says_not_found_and_outside_is_denied() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "hello\n");
    let read = workspace.value("read_file", json!({ "path": "a.txt" })).await;
    assert_eq!(read, json!({ "content": "hello\n", "size": 6 }));
    assert_eq!(workspace.value("read_file", json!({ "file_path": "a.txt" })).await, read);
    let (kind, message) = workspace.error("read_file", json!({ "path": "nope.txt" })).await;
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(message.contains("not found"), "{message}");
    let (kind, message) = workspace.error("read_file", json!({ "path": "/etc/passwd" })).await;
    assert_eq!(kind, ErrorKind::Permission);
    assert!(message.contains("Access denied"), "{message}");
}

#[tokio::test]
async fn some_lines_of_a_file_can_be_read() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "1\n2\n3\n4\n5");
    let lines = async |arguments: Value| workspace.value("read_file", arguments).await;
    let middle = lines(json!({ "path": "a.txt", "offset": 2, "limit": 2 })).await;
    assert_eq!(
        middle,
        json!({ "content": "2\n3\n", "size": 9, "startLine": 2, "endLine": 3, "truncated": true })
    );
    let end = lines(json!({ "path": "a.txt", "offset": 4 })).await;
    assert_eq!(
        end,
        json!({ "content": "4\n5", "size": 9, "startLine": 4, "endLine": 5, "truncated": false })
    );
    let (_, message) = workspace.error("read_file", json!({ "path": "a.txt", "offset": 7 })).await;
    assert!(
        message.contains("has 4 lines, so there is no line 7") || message.contains("has 5 lines"),
        "{message}"
    );
    let text = workspace.call("read_file", json!({ "path": "a.txt", "limit": 1 })).await.text();
    assert!(text.ends_with("[lines 1 to 1; more follow: read on with offset 2]"), "{text}");
    assert_eq!(
        workspace.error("read_file", json!({ "path": "a.txt", "offset": 0 })).await.0,
        ErrorKind::Validation
    );
}

#[tokio::test]
async fn encodings_are_honoured() {
    let workspace = Workspace::new();
    workspace.write("bin", [0xFF, 0x00, b'a']);
    let read = async |encoding: &str| {
        workspace.call("read_file", json!({ "path": "bin", "encoding": encoding })).await
    };
    assert_eq!(read("base64").await.value().unwrap(), &json!({ "content": "/wBh", "size": 3 }));
    assert_eq!(read("latin1").await.value().unwrap()["content"], "ÿ\u{0}a");
    assert!(read("utf-8").await.text().contains("looks binary"));
    assert_eq!(read("klingon").await.error_kind(), Some(ErrorKind::Validation));
    let written = workspace
        .value("write_file", json!({ "path": "u", "content": "hé", "encoding": "utf-16le" }))
        .await;
    assert_eq!(written, json!({ "bytesWritten": 4 }));
    assert_eq!(std::fs::read(workspace.path("u")).unwrap(), [b'h', 0, 0xE9, 0]);
    let bytes = workspace
        .value("write_file", json!({ "path": "b", "content": "/wBh", "encoding": "base64" }))
        .await;
    assert_eq!(bytes, json!({ "bytesWritten": 3 }));
    assert!(
        workspace
            .error("write_file", json!({ "path": "l", "content": "€", "encoding": "latin1" }))
            .await
            .1
            .contains("latin1 has no")
    );
}

#[tokio::test]
async fn a_remembered_file_is_forgotten_when_it_changes() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one");
    // The clock of the workspace stands at 1970: move it past the file's time so that it counts as settled.
    workspace.clock.advance(Duration::from_hours(100 * 365 * 24));
    let content =
        async || workspace.value("read_file", json!({ "path": "a.txt" })).await["content"].clone();
    assert_eq!(content().await, "one");
    assert_eq!(content().await, "one");
    let metadata = std::fs::metadata(workspace.path("a.txt")).unwrap();
    workspace.write("a.txt", "two");
    std::fs::File::open(workspace.path("a.txt"))
        .unwrap()
        .set_modified(metadata.modified().unwrap())
        .unwrap();
    assert_eq!(content().await, "two", "same size and time, other content");
    workspace.value("write_file", json!({ "path": "a.txt", "content": "six" })).await;
    assert_eq!(content().await, "six");
}

#[tokio::test]
async fn writing_replaces_whole_files_and_keeps_their_permissions() {
    let workspace = Workspace::new();
    let result =
        workspace.call("write_file", json!({ "path": "new/deep/a.txt", "content": "one\n" })).await;
    assert_eq!(result.value(), Some(&json!({ "bytesWritten": 4 })));
    assert_eq!(workspace.read("new/deep/a.txt"), "one\n");
    let path = workspace.path("new/deep/a.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let result =
        workspace.call("write_file", json!({ "path": "new/deep/a.txt", "content": "two\n" })).await;
    let display = result.return_display.unwrap();
    assert_eq!(display.format, DisplayFormat::Diff);
    assert!(display.text.contains("-one\n+two\n"), "{}", display.text);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(
        std::fs::read_dir(workspace.path("new/deep")).unwrap().count(),
        1,
        "nothing is left beside it"
    );
}

#[tokio::test]
async fn writing_through_a_link_changes_what_it_points_to() {
    let workspace = Workspace::new();
    workspace.write("real.txt", "old");
    symlink("real.txt", workspace.path("link.txt")).unwrap();
    workspace.value("write_file", json!({ "path": "link.txt", "content": "new" })).await;
    assert_eq!(workspace.read("real.txt"), "new");
    assert!(std::fs::symlink_metadata(workspace.path("link.txt")).unwrap().is_symlink());
}

#[tokio::test]
async fn a_full_disk_leaves_the_old_file() {
    let Some(disk) = SmallDisk::mount(64) else { return };
    let path = disk.0.path().join("a.txt");
    std::fs::write(&path, "precious").unwrap();
    let executor = executor(&[disk.0.path()], &Settings::default(), std::sync::Arc::default());
    let arguments = json!({ "path": "a.txt", "content": "x".repeat(200_000) });
    let result = executor.execute(convoke_core::ToolCall::new("c", "write_file", arguments)).await;
    assert!(
        result.text().contains("no space is left on the device; nothing was changed"),
        "{}",
        result.text()
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    assert_eq!(
        std::fs::read_dir(disk.0.path()).unwrap().count(),
        1,
        "the half-written file is gone"
    );
}

#[tokio::test]
async fn listing_shows_entries_sorted() {
    let workspace = Workspace::new();
    workspace.write("b.txt", "12345");
    workspace.write("dir/c.rs", "");
    symlink("b.txt", workspace.path("link")).unwrap();
    let listed = workspace.value("list_files", json!({ "path": "." })).await;
    let entries = listed["files"].as_array().unwrap();
    let brief: Vec<Value> = entries
        .iter()
        .map(|e| json!([e["name"], e["path"], e["is_dir"], e["is_symlink"]]))
        .collect();
    assert_eq!(
        brief,
        [
            json!(["b.txt", "./b.txt", false, false]),
            json!(["dir", "./dir", true, false]),
            json!(["link", "./link", false, true])
        ]
    );
    assert_eq!(entries[0]["size"], 5);
    assert!(entries[0]["modified"].as_i64().unwrap() > 1_600_000_000_000);
    let deep = workspace
        .value("list_files", json!({ "path": ".", "recursive": true, "pattern": "*.rs" }))
        .await;
    assert_eq!(deep["files"][0]["path"], "./dir/c.rs");
    assert_eq!(deep["files"].as_array().unwrap().len(), 1);
    assert_eq!(workspace.call("ls", json!({})).await.text(), "b.txt\ndir/\nlink@");
    assert_eq!(
        workspace.call("ls", json!({ "path": ".", "ignore": ["*.txt", "link"] })).await.text(),
        "dir/"
    );
    assert!(
        workspace
            .error("list_files", json!({ "path": "b.txt" }))
            .await
            .1
            .contains("not a directory")
    );
    assert_eq!(workspace.error("ls", json!({ "path": "nope" })).await.0, ErrorKind::NotFound);
}

#[tokio::test]
async fn deleting_tells_whether_there_was_a_file() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "");
    workspace.write("dir/b.txt", "");
    symlink("dir", workspace.path("link")).unwrap();
    let delete = async |path: &str| workspace.value("delete_file", json!({ "path": path })).await;
    assert_eq!(delete("a.txt").await, json!({ "deleted": true }));
    assert_eq!(delete("a.txt").await, json!({ "deleted": false }));
    assert_eq!(delete("no/such/dir").await, json!({ "deleted": false }));
    assert_eq!(delete("link").await, json!({ "deleted": true }));
    assert!(workspace.path("dir/b.txt").exists());
    assert!(
        workspace.error("delete_file", json!({ "path": "dir" })).await.1.contains("is a directory")
    );
}

#[tokio::test]
async fn moving_never_overwrites_unless_it_is_told_to() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "a");
    workspace.write("b.txt", "b");
    let (_, message) =
        workspace.error("move_file", json!({ "from": "a.txt", "to": "b.txt" })).await;
    assert!(message.contains("`b.txt` exists already"), "{message}");
    assert_eq!(workspace.read("b.txt"), "b");
    let moved = workspace
        .value("move_file", json!({ "from": "a.txt", "to": "b.txt", "overwrite": true }))
        .await;
    assert_eq!(moved, json!({ "success": true }));
    assert_eq!(workspace.read("b.txt"), "a");
    workspace.value("move_file", json!({ "from": "b.txt", "to": "new/dir/c.txt" })).await;
    assert_eq!(workspace.read("new/dir/c.txt"), "a");
    assert_eq!(
        workspace.error("move_file", json!({ "from": "b.txt", "to": "d" })).await.0,
        ErrorKind::NotFound
    );
    assert!(
        workspace
            .error("move_file", json!({ "from": "new", "to": "new/dir/x" }))
            .await
            .1
            .contains("into itself")
    );
    assert_eq!(
        workspace.error("move_file", json!({ "from": "new", "to": "/etc/x" })).await.0,
        ErrorKind::Permission
    );
}

#[tokio::test]
async fn moving_between_devices_copies_first() {
    let Some(disk) = SmallDisk::mount(64) else { return };
    let workspace = Workspace::new();
    workspace.write("a.txt", "across");
    let executor = executor(
        &[workspace.root(), disk.0.path()],
        &Settings::default(),
        std::sync::Arc::default(),
    );
    let to = disk.0.path().join("b.txt");
    let arguments = json!({ "from": "a.txt", "to": to });
    let result = executor.execute(convoke_core::ToolCall::new("c", "move_file", arguments)).await;
    assert!(result.success(), "{}", result.text());
    assert_eq!(std::fs::read_to_string(to).unwrap(), "across");
    assert!(!workspace.path("a.txt").exists());
}

#[tokio::test]
async fn a_missing_file_is_an_answer_to_get_file_info() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "1234");
    let missing = workspace.value("get_file_info", json!({ "path": "nope" })).await;
    assert_eq!(missing, json!({ "exists": false, "size": 0, "modified": 0, "is_dir": false }));
    let info = workspace.value("get_file_info", json!({ "path": "a.txt" })).await;
    assert_eq!((&info["exists"], &info["size"]), (&json!(true), &json!(4)));
    assert!(info["modified"].as_i64().unwrap() > 1_600_000_000_000);
    assert_eq!(
        workspace.error("get_file_info", json!({ "path": "/etc" })).await.0,
        ErrorKind::Permission
    );
}

#[tokio::test]
async fn a_private_file_is_private_while_it_is_written() {
    let workspace = Workspace::new();
    workspace.write(".env", "old");
    std::fs::set_permissions(workspace.path(".env"), std::fs::Permissions::from_mode(0o600))
        .unwrap();
    let root = workspace.root().to_path_buf();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = std::sync::Arc::clone(&stop);
    let watcher = std::thread::spawn(move || {
        let mut open_modes = 0;
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            for entry in std::fs::read_dir(&root).unwrap().flatten() {
                let mode = entry.metadata().map_or(0, |metadata| metadata.permissions().mode());
                open_modes += u32::from(mode & 0o077 != 0);
            }
        }
        open_modes
    });
    let content = "x".repeat(512 * 1024);
    for _ in 0..30 {
        workspace.value("write_file", json!({ "path": ".env", "content": content })).await;
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(watcher.join().unwrap(), 0, "somebody else could have read it");
}

#[tokio::test]
async fn a_read_only_file_is_not_replaced() {
    let workspace = Workspace::new();
    workspace.write("a", "old");
    std::fs::set_permissions(workspace.path("a"), std::fs::Permissions::from_mode(0o444)).unwrap();
    let (kind, message) =
        workspace.error("write_file", json!({ "path": "a", "content": "new" })).await;
    assert_eq!(kind, ErrorKind::Permission);
    assert!(message.contains("is read-only"), "{message}");
    assert_eq!(workspace.read("a"), "old");
}

#[tokio::test]
async fn what_cannot_exist_does_not() {
    let workspace = Workspace::new();
    workspace.write("file", "");
    let info = workspace.value("get_file_info", json!({ "path": "file/child" })).await;
    assert_eq!(info["exists"], false);
    assert_eq!(
        workspace.value("delete_file", json!({ "path": "file/child" })).await,
        json!({ "deleted": false })
    );
}

#[tokio::test]
async fn moving_between_devices_keeps_permissions_and_writes_through_no_link() {
    let Some(disk) = SmallDisk::mount(64) else { return };
    let workspace = Workspace::new();
    workspace.write("tool.sh", "#!/bin/sh\n");
    std::fs::set_permissions(workspace.path("tool.sh"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
    symlink(workspace.path("victim"), disk.0.path().join("taken")).unwrap();
    let executor = executor(
        &[workspace.root(), disk.0.path()],
        &Settings::default(),
        std::sync::Arc::default(),
    );
    let go = async |id: &str, to: &str| {
        let arguments = json!({ "from": "tool.sh", "to": disk.0.path().join(to) });
        executor.execute(convoke_core::ToolCall::new(id, "move_file", arguments)).await
    };
    let refused = go("1", "taken").await;
    assert!(refused.text().contains("exists already"), "{}", refused.text());
    assert!(!workspace.path("victim").exists() && workspace.path("tool.sh").exists());
    assert!(go("2", "tool.sh").await.success());
    let mode = std::fs::metadata(disk.0.path().join("tool.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}
