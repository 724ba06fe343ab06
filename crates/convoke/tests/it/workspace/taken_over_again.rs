//! Taking over what was changed in a workspace, also again and again: the same, whatever kind it is.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;

use convoke::workspace::Apply;
use convoke::{Workspace, WorkspaceError};
use convoke_core::{RunId, WorkspaceKind};

use super::{Scene, apply, changes, files, told, write};

/// Each kind, and what it says behind the name of a file that somebody else changed.
const KINDS: [(WorkspaceKind, &str); 2] =
    [(WorkspaceKind::Copy, ""), (WorkspaceKind::Worktree, " (patch does not apply)")];

async fn prepared(kind: WorkspaceKind) -> (Scene, Workspace) {
    prepared_with(kind, &[]).await
}

/// The same with more files.
async fn prepared_with(kind: WorkspaceKind, more: &[(&str, &str)]) -> (Scene, Workspace) {
    let scene = Scene::repository();
    for (name, content) in more {
        scene.write(name, content);
    }
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

/// The files below a directory, with what they say.
fn contents(root: &Path) -> Vec<(String, String)> {
    let read = |name: &String| fs::read_to_string(root.join(name)).unwrap_or_default();
    files(root).into_iter().map(|name| (name.clone(), read(&name))).collect()
}

#[tokio::test]
async fn what_the_user_changed_meanwhile_is_named_and_nothing_is_written() {
    for (kind, because) in KINDS {
        let (scene, workspace) = prepared(kind).await;
        let root = workspace.root().unwrap().to_owned();
        write(&root.join("a.txt"), "ONE\ntwo\nthree\n");
        write(&root.join("src/b.rs"), "fn b() { b() }\n");
        write(&root.join("new.txt"), "mine\n");
        scene.write("a.txt", "eins\nzwei\ndrei\n");
        scene.write("new.txt", "yours\n");
        let before = contents(&scene.project());
        let error = apply(&workspace).await.unwrap_err();
        let there = if because.is_empty() { "" } else { " (already exists in working directory)" };
        let expected = [format!("a.txt{because}"), format!("new.txt{there}")];
        assert_eq!(in_the_way(error), expected, "{kind:?}");
        assert_eq!(contents(&scene.project()), before, "{kind:?}: all or nothing");
        assert!(workspace.is_needed().await.unwrap(), "{kind:?}");
        // A change elsewhere is in nobody's way.
        scene.write("a.txt", "one\ntwo\nthree\n");
        fs::remove_file(scene.project().join("new.txt")).unwrap();
        scene.write("other.txt", "yours\n");
        assert_eq!(apply(&workspace).await.unwrap().len(), 3, "{kind:?}");
        assert_eq!(scene.read("other.txt"), "yours\n", "{kind:?}");
        fs::remove_file(scene.project().join("other.txt")).unwrap();
        assert_eq!(contents(&scene.project()), contents(&root), "{kind:?}");
    }
}

/// Bug: what was taken over before a run went on was in the way of what came after.
#[tokio::test]
async fn what_was_taken_over_before_is_no_conflict() {
    for (kind, because) in KINDS {
        let (scene, workspace) = prepared(kind).await;
        let root = workspace.root().unwrap().to_owned();
        write(&root.join("new[1].txt"), "first\n");
        write(&root.join("a.txt"), "ONE\ntwo\nthree\n");
        assert_eq!(apply(&workspace).await.unwrap().len(), 2, "{kind:?}");
        write(&root.join("new2.txt"), "second\n");
        let checked = workspace.apply(Apply::Check).await.unwrap();
        assert!(!checked.already && !scene.project().join("new2.txt").exists(), "{kind:?}");
        assert_eq!(apply(&workspace).await.unwrap().len(), 3, "{kind:?}");
        assert_eq!(contents(&scene.project()), contents(&root), "{kind:?}");
        // What somebody changed is still in the way, and named alone.
        write(&root.join("new3.txt"), "third\n");
        write(&root.join("new2.txt"), "second\nthird\n");
        scene.write("new2.txt", "yours\n");
        let error = apply(&workspace).await.unwrap_err();
        assert_eq!(in_the_way(error), [format!("new2.txt{because}")], "{kind:?}");
        assert!(!scene.project().join("new3.txt").exists(), "{kind:?}: all or nothing");
    }
}

/// Bug: lines that were taken over came a second time, where those before them are the same.
#[tokio::test]
async fn nothing_is_taken_over_twice() {
    let [six, seven, eight] = [6, 7, 8].map(|lines| "x\n".repeat(lines));
    for (kind, _) in KINDS {
        let (scene, workspace) = prepared_with(kind, &[("same.txt", &six)]).await;
        let root = workspace.root().unwrap().to_owned();
        write(&root.join("same.txt"), &seven);
        apply(&workspace).await.unwrap();
        let workspace = opened_again(&scene, workspace);
        assert!(workspace.apply(Apply::Really).await.unwrap().already, "{kind:?}");
        assert_eq!(contents(&scene.project()), contents(&root), "{kind:?}");
        // Also beside what is changed further, there and elsewhere.
        write(&root.join("a.txt"), "ONE\ntwo\nthree\n");
        apply(&workspace).await.unwrap();
        assert_eq!(contents(&scene.project()), contents(&root), "{kind:?}");
        write(&root.join("same.txt"), &eight);
        apply(&workspace).await.unwrap();
        assert_eq!(contents(&scene.project()), contents(&root), "{kind:?}");
        // What the user undid comes again, whole.
        scene.write("same.txt", &six);
        write(&root.join("new.txt"), "new\n");
        apply(&workspace).await.unwrap();
        assert_eq!(contents(&scene.project()), contents(&root), "{kind:?}");
        // Something else is not what was taken over.
        for name in ["new.txt", "a.txt"] {
            let before = scene.read(name);
            scene.write(name, "yours\n");
            let error = apply(&workspace).await.unwrap_err();
            assert!(matches!(error, WorkspaceError::AlreadyApplied { .. }), "{kind:?}: {error:?}");
            scene.write(name, before);
        }
    }
}

/// Bug: some files were written before it was seen that another has no place.
#[tokio::test]
async fn where_a_file_has_no_place_nothing_is_written() {
    for (kind, _) in KINDS {
        for (wanted, there, why) in [
            ("n", "n/of the user", "n (a directory is there)"),
            ("n", "n/empty/", "n (a directory is there)"),
            ("x/y", "x", "x/y (`x` is no directory)"),
            ("x/y/z", "x", "x/y/z (`x` is no directory)"),
            ("pipe", "pipe|", "pipe (something is there that is no file)"),
        ] {
            let (scene, workspace) = prepared(kind).await;
            let root = workspace.root().unwrap().to_owned();
            write(&root.join("a.txt"), "ONE\ntwo\nthree\n");
            write(&root.join(wanted), "of the run\n");
            let place = scene.project().join(there.trim_end_matches('|'));
            if there.ends_with('/') {
                fs::create_dir_all(&place).unwrap();
            } else if there.ends_with('|') {
                let made = std::process::Command::new("mkfifo").arg(&place).status();
                assert!(made.unwrap().success());
            } else {
                scene.write(there, "of the user\n");
            }
            for how in [Apply::Check, Apply::Really] {
                let error = workspace.apply(how).await.map(drop).unwrap_err();
                assert_eq!(in_the_way(error), [why], "{kind:?} {how:?}");
            }
            assert_eq!(scene.read("a.txt"), "one\ntwo\nthree\n", "{kind:?} {there}");
            let stays = fs::symlink_metadata(&place).unwrap().file_type();
            assert_eq!(stays.is_fifo(), there.ends_with('|'), "{kind:?} {there}");
        }
    }
}

#[tokio::test]
async fn what_goes_makes_room() {
    for (kind, _) in KINDS {
        let more = [("d/1", "1\n"), ("d/e/2", "2\n"), ("f", "f\n"), ("l/3", "3\n")];
        let (scene, workspace) = prepared_with(kind, &more).await;
        let root = workspace.root().unwrap().to_owned();
        fs::remove_dir_all(root.join("d")).unwrap();
        write(&root.join("d"), "a file\n");
        fs::remove_file(root.join("f")).unwrap();
        write(&root.join("f/g/h"), "in a directory\n");
        fs::remove_dir_all(root.join("l")).unwrap();
        symlink("a.txt", root.join("l")).unwrap();
        scene.write("d/e/of the user", "u\n");
        let before = contents(&scene.project());
        let error = apply(&workspace).await.unwrap_err();
        assert_eq!(in_the_way(error), ["d (a directory is there)"], "{kind:?}");
        assert_eq!(contents(&scene.project()), before, "{kind:?}");
        fs::remove_file(scene.project().join("d/e/of the user")).unwrap();
        apply(&workspace).await.unwrap();
        assert_eq!(contents(&scene.project()), contents(&root), "{kind:?}");
        let again = workspace.apply(Apply::Really).await.unwrap();
        assert!(again.already, "{kind:?}");
        // And back again.
        for name in ["d", "l", "f/g/h"] {
            fs::remove_file(root.join(name)).unwrap();
        }
        fs::remove_dir_all(root.join("f")).unwrap();
        for (name, content) in more {
            write(&root.join(name), content);
        }
        apply(&workspace).await.unwrap();
        assert_eq!(contents(&scene.project()), contents(&root), "{kind:?}");
    }
}

/// Bug: a copy was written under a longer name first, which is too long where the name is long already.
#[tokio::test]
async fn names_may_be_as_long_as_they_can_be() {
    for (kind, _) in KINDS {
        let (scene, workspace) = prepared(kind).await;
        let root = workspace.root().unwrap().to_owned();
        write(&root.join("n".repeat(255)), "x\n");
        write(&root.join(".convoke-0"), "of the run\n");
        scene.write(".convoke-1", "of the user\n");
        apply(&workspace).await.unwrap();
        assert_eq!(scene.read(".convoke-1"), "of the user\n", "{kind:?}");
        fs::remove_file(scene.project().join(".convoke-1")).unwrap();
        assert_eq!(contents(&scene.project()), contents(&root), "{kind:?}");
    }
}

/// Bug: a directory whose last file went was made anew for the next one, with the usual rights.
#[tokio::test]
async fn a_directory_that_stays_keeps_its_rights() {
    // Git removes it itself.
    let (scene, workspace) = prepared_with(WorkspaceKind::Copy, &[("own/old", "x\n")]).await;
    let root = workspace.root().unwrap().to_owned();
    let own = scene.project().join("own");
    fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_file(root.join("own/old")).unwrap();
    write(&root.join("own/new"), "y\n");
    apply(&workspace).await.unwrap();
    assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(contents(&scene.project()), contents(&root));
}

#[tokio::test]
async fn what_is_taken_back_is_not_removed_through_a_link() {
    for (kind, _) in KINDS {
        for place in ["elsewhere", "home/project/moved"] {
            let (scene, workspace) = prepared(kind).await;
            let root = workspace.root().unwrap().to_owned();
            write(&root.join("sub/x.txt"), "x\n");
            apply(&workspace).await.unwrap();
            fs::remove_dir_all(root.join("sub")).unwrap();
            fs::rename(scene.project().join("sub"), scene.root.join(place)).unwrap();
            symlink(scene.root.join(place), scene.project().join("sub")).unwrap();
            let error = apply(&workspace).await.unwrap_err();
            assert_eq!(in_the_way(error), ["sub/x.txt (`sub` is no directory)"], "{kind:?}");
            assert_eq!(files(&scene.root.join(place)), ["x.txt"], "{kind:?}");
        }
    }
}

#[tokio::test]
async fn a_link_put_in_the_way_leads_nothing_out() {
    for (kind, _) in KINDS {
        let (scene, workspace) = prepared(kind).await;
        write(&workspace.root().unwrap().join("sub/x.txt"), "x\n");
        fs::create_dir(scene.root.join("elsewhere")).unwrap();
        symlink(scene.root.join("elsewhere"), scene.project().join("sub")).unwrap();
        let error = apply(&workspace).await.unwrap_err();
        assert_eq!(in_the_way(error), ["sub/x.txt (`sub` is no directory)"], "{kind:?}");
        assert_eq!(files(&scene.root.join("elsewhere")), [""; 0], "{kind:?}");
    }
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
        assert_eq!(contents(&scene.project()), contents(&root), "{kind:?}");
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
