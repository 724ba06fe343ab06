//! Copies of directories without git.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use convoke::WorkspaceError;
use convoke::workspace::CopyLimits;
use convoke_core::{RunId, WorkspaceKind};

use super::{Scene, apply, changes, files, write};

fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("a.txt", "one\ntwo\n");
    scene.write("gone.txt", "1\n");
    scene.write("deep/er/moved.txt", "moved\n");
    scene.write("data.bin", b"\0\x01");
    scene.write("run.sh", "echo\n");
    scene
}

#[tokio::test]
async fn what_was_changed_in_a_copy_is_found_and_can_be_taken_over() {
    let scene = scene();
    symlink("/etc/passwd", scene.project().join("out")).unwrap();
    let workspace = scene.copy("r1").await.unwrap();
    let root = workspace.root().unwrap().to_owned();
    assert_eq!(files(&root), files(&scene.project()));
    assert_eq!(fs::read_link(root.join("out")).unwrap().to_str(), Some("/etc/passwd"));
    assert_eq!(changes(&workspace).await, [""; 0]);
    write(&root.join("a.txt"), "one\n2\n3\n");
    write(&root.join("new dir/ü\n.txt"), "x\n");
    write(&root.join("data.bin"), b"\0\x02");
    fs::remove_file(root.join("gone.txt")).unwrap();
    fs::rename(root.join("deep/er/moved.txt"), root.join("there.txt")).unwrap();
    fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(root.join("out")).unwrap();
    symlink("a.txt", root.join("out")).unwrap();
    let expected = [
        "modified a.txt +2 -1",
        "modified data.bin binary",
        "deleted gone.txt +0 -1",
        "added new dir/ü\n.txt +1 -0",
        "modified out +1 -1",
        "modified run.sh +0 -0",
        "renamed deep/er/moved.txt -> there.txt +0 -0",
    ];
    assert_eq!(changes(&workspace).await, expected);
    assert_eq!(scene.read("a.txt"), "one\ntwo\n");
    assert_eq!(apply(&workspace).await.unwrap(), expected);
    assert_eq!(files(&scene.project()), files(&root));
    assert!(!scene.project().join("deep").exists(), "an empty directory goes with its last file");
    assert_eq!(fs::read(scene.project().join("data.bin")).unwrap(), b"\0\x02");
    let mode = fs::metadata(scene.project().join("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    drop(workspace);
    let again = scene.workspaces().open(&RunId::new("r1")).unwrap();
    assert!(!again.is_needed().await.unwrap());
    again.discard().await.unwrap();
    assert_eq!(scene.workspaces().list().unwrap(), []);
}

#[tokio::test]
async fn what_is_too_much_is_refused_and_nothing_is_left() {
    let scene = scene();
    let (run, kind) = (RunId::new("r1"), WorkspaceKind::Copy);
    for limits in [
        CopyLimits { files: 3, ..CopyLimits::default() },
        CopyLimits { bytes: 10, ..CopyLimits::default() },
    ] {
        let workspaces = scene.workspaces().limits(limits);
        let error = workspaces.prepare(kind, &run, &scene.project()).await.unwrap_err();
        assert!(matches!(error, WorkspaceError::TooMuch { .. }), "{error:?}");
        assert!(error.hint().unwrap().contains("smaller directory"));
        assert_eq!(workspaces.list().unwrap(), []);
    }
    let error = scene.workspaces().prepare(kind, &run, &scene.root).await.unwrap_err();
    assert!(matches!(error, WorkspaceError::Inside { .. }), "{error:?}");
}

#[tokio::test]
async fn pipes_and_git_are_left_out_and_told() {
    let scene = Scene::repository();
    let made = std::process::Command::new("mkfifo").arg(scene.project().join("pipe")).status();
    assert!(made.unwrap().success());
    let workspace = scene.copy("r1").await.unwrap();
    assert_eq!(
        convoke::agent::Workplace::notes(&workspace),
        [
            "`.git` is left out: there is no history in the copy",
            "pipes, sockets and devices are left out: pipe",
        ]
    );
    assert!(!workspace.root().unwrap().join(".git").exists());
}
