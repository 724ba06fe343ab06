//! What happens in a workspace after something of it was taken over: the same, whatever kind it is.

use std::fs;

use convoke::workspace::Apply;
use convoke::{Workspace, WorkspaceError};
use convoke_core::{RunId, WorkspaceKind};

use super::{Scene, apply, changes, files, told, write};

/// Each kind, and what it says behind the name of a file that somebody else changed.
const KINDS: [(WorkspaceKind, &str); 2] =
    [(WorkspaceKind::Copy, ""), (WorkspaceKind::Worktree, " (patch does not apply)")];

async fn prepared(kind: WorkspaceKind) -> (Scene, Workspace) {
    let scene = Scene::repository();
    let (run, project) = (RunId::new("r1"), scene.project());
    let workspace = scene.workspaces().prepare(kind, &run, &project).await.unwrap();
    (scene, workspace)
}

/// Opens the workspace as another process would, later.
fn opened_again(scene: &Scene, workspace: Workspace) -> Workspace {
    drop(workspace);
    scene.workspaces().open(&RunId::new("r1")).unwrap()
}

#[track_caller]
fn in_the_way(error: WorkspaceError) -> Vec<String> {
    let WorkspaceError::Conflict { files, .. } = error else { panic!("{error:?}") };
    files
}

/// What is changed further in a file that was taken over is the difference since then.
#[tokio::test]
async fn what_was_changed_further_fits() {
    for (kind, because) in KINDS {
        let (scene, workspace) = prepared(kind).await;
        let root = workspace.root().unwrap().to_owned();
        write(&root.join("new.txt"), "first\n");
        write(&root.join("a.txt"), "ONE\ntwo\nthree\n");
        assert_eq!(apply(&workspace).await.unwrap().len(), 2, "{kind:?}");
        let workspace = opened_again(&scene, workspace);
        write(&root.join("new.txt"), "first\nsecond\n");
        write(&root.join("a.txt"), "ONE\ntwo\nTHREE\n");
        workspace.apply(Apply::Check).await.unwrap();
        assert_eq!(scene.read("new.txt"), "first\n", "{kind:?}: it was only tried");
        apply(&workspace).await.unwrap();
        assert_eq!(scene.read("new.txt"), "first\nsecond\n", "{kind:?}");
        assert_eq!(scene.read("a.txt"), "ONE\ntwo\nTHREE\n", "{kind:?}");
        // What somebody else changed is in the way.
        let workspace = opened_again(&scene, workspace);
        write(&root.join("new.txt"), "first\nsecond\nthird\n");
        scene.write("new.txt", "yours\n");
        let error = apply(&workspace).await.unwrap_err();
        assert_eq!(in_the_way(error), [format!("new.txt{because}")], "{kind:?}");
        assert_eq!(scene.read("new.txt"), "yours\n", "{kind:?}");
    }
}

/// Bug: what was undone after it was taken over stayed in the user's files.
#[tokio::test]
async fn what_was_undone_is_taken_back() {
    for (kind, because) in KINDS {
        let (scene, workspace) = prepared(kind).await;
        let root = workspace.root().unwrap().to_owned();
        write(&root.join("sub/made.txt"), "x\n");
        write(&root.join("stays.txt"), "s\n");
        write(&root.join("a.txt"), "ONE\ntwo\nthree\n");
        fs::remove_file(root.join("src/b.rs")).unwrap();
        apply(&workspace).await.unwrap();
        assert!(!scene.project().join("src/b.rs").exists(), "{kind:?}");
        // Also where a file is now in the place of a directory.
        fs::remove_dir_all(root.join("sub")).unwrap();
        write(&root.join("sub"), "y\n");
        write(&root.join("a.txt"), "one\ntwo\nthree\n");
        write(&root.join("src/b.rs"), "fn b() {}\n");
        workspace.apply(Apply::Check).await.unwrap();
        assert_eq!(scene.read("sub/made.txt"), "x\n", "{kind:?}: it was only tried");
        let applied = workspace.apply(Apply::Really).await.unwrap();
        let expected = [
            "modified a.txt +1 -1",
            "added src/b.rs +1 -0",
            "added stays.txt +1 -0",
            "added sub +1 -0",
            "deleted sub/made.txt +0 -1",
        ];
        assert_eq!(told(&applied), expected, "{kind:?}");
        assert_eq!(applied.taken_back, ["a.txt", "src/b.rs", "sub/made.txt"], "{kind:?}");
        assert_eq!(files(&scene.project()), files(&root), "{kind:?}");
        assert_eq!(scene.read("a.txt"), "one\ntwo\nthree\n", "{kind:?}");
        // All of it: as long as the user's files have it, the workspace is needed.
        fs::remove_file(root.join("sub")).unwrap();
        fs::remove_file(root.join("stays.txt")).unwrap();
        let workspace = opened_again(&scene, workspace);
        assert_eq!(changes(&workspace).await, [""; 0], "{kind:?}");
        assert!(workspace.is_needed().await.unwrap(), "{kind:?}");
        scene.write("stays.txt", "yours\n");
        let error = apply(&workspace).await.unwrap_err();
        assert_eq!(in_the_way(error), [format!("stays.txt{because}")], "{kind:?}");
        assert_eq!(scene.read("sub"), "y\n", "{kind:?}: all or nothing");
        scene.write("stays.txt", "s\n");
        let expected = ["deleted stays.txt +0 -1", "deleted sub +0 -1"];
        assert_eq!(apply(&workspace).await.unwrap(), expected, "{kind:?}");
        assert_eq!(files(&scene.project()), [".gitignore", "a.txt", "src/b.rs"], "{kind:?}");
        assert!(!workspace.is_needed().await.unwrap(), "{kind:?}");
        assert_eq!(apply(&workspace).await.unwrap(), [""; 0], "{kind:?}");
    }
}
