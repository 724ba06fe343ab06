//! Worktrees of all kinds of repositories.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use convoke::WorkspaceError;
use convoke::workspace::Apply;
use convoke_core::RunId;

use super::{Scene, apply, changes, files, write};

#[tokio::test]
async fn a_run_sees_what_its_user_sees_and_touches_none_of_it() {
    let scene = Scene::repository();
    scene.write("a.txt", "one\nTWO\nthree\n");
    scene.write("new.txt", "new\n");
    scene.write("staged.txt", "staged\n");
    scene.write("ignored/big", "not carried over");
    scene.write("x.log", "neither");
    scene.git(&["add", "staged.txt"]);
    let before = (scene.git(&["status", "--porcelain=2"]), scene.git(&["rev-parse", "HEAD"]));
    let workspace = scene.worktree("r1").await.unwrap();
    let root = workspace.root().unwrap().to_owned();
    assert_eq!(files(&root), [".gitignore", "a.txt", "new.txt", "src/b.rs", "staged.txt"]);
    assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "one\nTWO\nthree\n");
    assert_eq!(changes(&workspace).await, [""; 0], "what the user changed is not the run's");
    assert!(!workspace.is_needed().await.unwrap());
    let after = (scene.git(&["status", "--porcelain=2"]), scene.git(&["rev-parse", "HEAD"]));
    assert_eq!(before, after, "the user's index, branch and files are as they were");
    assert_eq!(scene.git_in(&root, &["branch", "--show-current"]), "convoke/r1\n");
    workspace.discard().await.unwrap();
    assert!(!root.exists() && !scene.workspaces().has(&RunId::new("r1")));
    assert_eq!(scene.git(&["branch", "--list", "convoke/*"]), "");
    assert_eq!(scene.git(&["worktree", "list"]).lines().count(), 1);
}

#[tokio::test]
async fn every_kind_of_change_is_found_and_can_be_taken_over() {
    let scene = Scene::repository();
    let odd = "dir/a name\nwith \"é\" ü";
    scene.write("gone.txt", "1\n2\n");
    scene.write("moved.txt", "a long enough text\nto be known again\nwherever it goes\n");
    scene.write("run.sh", "echo\n");
    scene.write("data.bin", b"\0\x01\xff");
    scene.write(odd, "x\n");
    scene.git(&["add", "-A"]);
    scene.git(&["commit", "--quiet", "-m", "second"]);
    let workspace = scene.worktree("r1").await.unwrap();
    let root = workspace.root().unwrap().to_owned();
    write(&root.join("a.txt"), "one\ntwo\nthree\nfour\n");
    write(&root.join("new/deep.txt"), "x\ny\n");
    write(&root.join("data.bin"), b"\0\x02\xff");
    write(&root.join(odd), "y\n");
    write(&root.join("built.log"), "ignored");
    fs::remove_file(root.join("gone.txt")).unwrap();
    fs::rename(root.join("moved.txt"), root.join("there.txt")).unwrap();
    fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", root.join("out")).unwrap();
    let expected = [
        "modified a.txt +1 -0".to_owned(),
        "modified data.bin binary".to_owned(),
        format!("modified {odd} +1 -1"),
        "deleted gone.txt +0 -2".to_owned(),
        "added new/deep.txt +2 -0".to_owned(),
        "added out +1 -0".to_owned(),
        "modified run.sh +0 -0".to_owned(),
        "renamed moved.txt -> there.txt +0 -0".to_owned(),
    ];
    assert_eq!(changes(&workspace).await, expected);
    assert!(workspace.is_needed().await.unwrap());
    workspace.apply(Apply::Check).await.unwrap();
    assert_eq!(scene.git(&["status", "--porcelain"]), "", "trying changes nothing");
    assert_eq!(apply(&workspace).await.unwrap(), expected);
    let without_logs = |mut files: Vec<String>| {
        files.retain(|name| name != "built.log");
        files
    };
    assert_eq!(files(&scene.project()), without_logs(files(&root)));
    assert_eq!(fs::read(scene.project().join("data.bin")).unwrap(), b"\0\x02\xff");
    assert_eq!(scene.read("a.txt"), "one\ntwo\nthree\nfour\n");
    assert_eq!(fs::read_link(scene.project().join("out")).unwrap().to_str(), Some("/etc/passwd"));
    let mode = fs::metadata(scene.project().join("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    assert_eq!(scene.git(&["rev-list", "--count", "HEAD"]), "2\n", "nothing is committed");
    drop(workspace);
    let again = scene.workspaces().open(&RunId::new("r1")).unwrap();
    assert!(!again.is_needed().await.unwrap(), "all of it was taken over");
}

#[tokio::test]
async fn commits_of_the_run_are_part_of_what_it_changed() {
    let scene = Scene::repository();
    let workspace = scene.worktree("r1").await.unwrap();
    let root = workspace.root().unwrap().to_owned();
    write(&root.join("c.txt"), "c\n");
    scene.git_in(&root, &["add", "-A"]);
    scene.git_in(&root, &["commit", "--quiet", "-m", "by the run"]);
    write(&root.join("d.txt"), "d\n");
    assert_eq!(changes(&workspace).await, ["added c.txt +1 -0", "added d.txt +1 -0"]);
    fs::remove_file(root.join("c.txt")).unwrap();
    fs::remove_file(root.join("d.txt")).unwrap();
    assert_eq!(changes(&workspace).await, [""; 0]);
    assert!(workspace.is_needed().await.unwrap(), "its commits are nowhere else");
}

#[tokio::test]
async fn a_run_works_in_the_directory_it_was_started_in() {
    let scene = Scene::repository();
    let run = RunId::new("r1");
    let kind = convoke_core::WorkspaceKind::Worktree;
    let start = scene.project().join("src");
    let workspace = scene.workspaces().prepare(kind, &run, &start).await.unwrap();
    assert_eq!(workspace.working_directory(), scene.store().join("r1/src"));
    assert_eq!(workspace.start(), start);
}

#[tokio::test]
async fn a_repository_without_commits_and_a_detached_head_are_no_problem() {
    let scene = Scene::new();
    scene.git(&["init", "--quiet", "-b", "main"]);
    scene.write("a.txt", "one\n");
    let workspace = scene.worktree("r1").await.unwrap();
    let root = workspace.root().unwrap().to_owned();
    assert_eq!(files(&root), ["a.txt"]);
    write(&root.join("a.txt"), "two\n");
    assert_eq!(apply(&workspace).await.unwrap(), ["modified a.txt +1 -1"]);
    assert_eq!(scene.read("a.txt"), "two\n");

    let scene = Scene::repository();
    scene.git(&["checkout", "--quiet", "--detach"]);
    let workspace = scene.worktree("r1").await.unwrap();
    write(&workspace.root().unwrap().join("a.txt"), "two\n");
    assert_eq!(apply(&workspace).await.unwrap(), ["modified a.txt +0 -2"]);
}

#[tokio::test]
async fn where_no_worktree_can_be_made_it_is_said_why() {
    let scene = Scene::new();
    let error = scene.worktree("r1").await.unwrap_err();
    assert!(matches!(error, WorkspaceError::NoRepository { .. }), "{error:?}");
    assert!(error.to_string().contains("not a git repository"), "{error}");
    assert_eq!(error.hint(), Some("`--workspace copy` works without git"));
    assert_eq!(scene.workspaces().list().unwrap(), [], "nothing is left behind");

    let bare = Scene::new();
    bare.git(&["init", "--quiet", "--bare"]);
    let error = bare.worktree("r1").await.unwrap_err();
    assert!(error.to_string().contains("bare"), "{error}");

    let scene = Scene::repository();
    let nothing = [("PATH".to_owned(), scene.root.to_str().unwrap().to_owned())].into();
    let workspaces = scene.workspaces().environment(nothing);
    let error = workspaces.check(&scene.project()).await.unwrap_err();
    assert!(matches!(error, WorkspaceError::NoGit(_)), "{error:?}");
}

#[tokio::test]
async fn submodules_and_repositories_inside_are_told() {
    let scene = Scene::repository();
    let other = Scene::repository();
    let url = other.project().to_str().unwrap().to_owned();
    scene.git(&["submodule", "--quiet", "add", &url, "sub"]);
    scene.git(&["commit", "--quiet", "-m", "with a submodule"]);
    fs::create_dir(scene.project().join("inner")).unwrap();
    scene.git_in(&scene.project().join("inner"), &["init", "--quiet"]);
    scene.write("inner/x", "x");
    scene.git_in(&scene.project().join("inner"), &["add", "x"]);
    scene.git_in(&scene.project().join("inner"), &["commit", "--quiet", "-m", "x"]);
    let workspace = scene.worktree("r1").await.unwrap();
    let notes = convoke::agent::Workplace::notes(&workspace);
    assert_eq!(
        notes,
        [
            "repositories inside of it are left out: inner/",
            "submodules are empty directories in it: sub",
        ]
    );
    assert_eq!(changes(&workspace).await, [""; 0]);
}

/// Bug: git gave up where it met a worktree that another run was just making.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_worktrees_are_made_at_once() {
    let scene = std::sync::Arc::new(Scene::repository());
    let mut made = tokio::task::JoinSet::new();
    for number in 0..12 {
        let scene = std::sync::Arc::clone(&scene);
        made.spawn(async move { scene.worktree(&format!("r{number}")).await.map(drop) });
    }
    while let Some(made) = made.join_next().await {
        made.unwrap().unwrap();
    }
    assert_eq!(scene.git(&["worktree", "list"]).lines().count(), 13);
}

#[tokio::test]
async fn two_runs_at_once_do_not_know_of_each_other() {
    let scene = Scene::repository();
    let (one, two) = tokio::join!(scene.worktree("r1"), scene.worktree("r2"));
    let (one, two) = (one.unwrap(), two.unwrap());
    write(&one.root().unwrap().join("a.txt"), "1\n");
    write(&two.root().unwrap().join("b.txt"), "2\n");
    let (first, second) = tokio::join!(changes(&one), changes(&two));
    assert_eq!(
        (first, second),
        (vec!["modified a.txt +1 -3".into()], vec!["added b.txt +1 -0".into()])
    );
    let error = scene.workspaces().open(&RunId::new("r1")).unwrap_err();
    assert!(matches!(error, WorkspaceError::InUse { .. }), "{error:?}");
    let error = scene.workspaces().remove(&RunId::new("r1")).await.unwrap_err();
    assert!(matches!(error, WorkspaceError::InUse { .. }), "{error:?}");
}

/// Bug: the copy of the index was younger than the index, so git took a file for unchanged that was changed
/// in the same second, to the same length.
#[tokio::test]
async fn a_change_right_after_the_start_is_not_missed() {
    let scene = Scene::repository();
    for number in 0..5 {
        let workspace = scene.worktree(&format!("r{number}")).await.unwrap();
        write(&workspace.root().unwrap().join("a.txt"), "ONE\ntwo\nthree\n");
        assert_eq!(changes(&workspace).await, ["modified a.txt +1 -1"]);
    }
}

#[tokio::test]
async fn what_a_killed_process_leaves_is_found_and_cleared_away() {
    let scene = Scene::repository();
    let run = RunId::new("r1");
    let workspace = scene.worktree("r1").await.unwrap();
    let root = workspace.root().unwrap().to_owned();
    drop(workspace);
    // As it is when somebody is killed in the middle: all is there, but it was never completed.
    let known = scene.store().join("r1.json");
    let text =
        fs::read_to_string(&known).unwrap().replace("\"complete\": true", "\"complete\": false");
    fs::write(&known, text).unwrap();
    write(&root.join("half"), "x");
    let workspaces = scene.workspaces();
    assert_eq!(workspaces.list().unwrap(), std::slice::from_ref(&run));
    assert!(!workspaces.is_needed(&run).await.unwrap());
    workspaces.remove(&run).await.unwrap();
    assert_eq!(workspaces.list().unwrap(), []);
    assert_eq!(scene.git(&["branch", "--list", "convoke/*"]), "");
    assert_eq!(scene.git(&["worktree", "list"]).lines().count(), 1);
    assert!(matches!(workspaces.open(&run), Err(WorkspaceError::Gone { .. })));
}

/// Bug: what was taken over came a second time into a file that the user had changed elsewhere.
#[tokio::test]
async fn what_was_taken_over_is_known_again_beside_what_the_user_changed() {
    let file = |top: &str, lines: usize| format!("{top}\n{}", "x\n".repeat(lines));
    let scene = Scene::repository();
    scene.write("same.txt", file("top", 6));
    let workspace = scene.worktree("r1").await.unwrap();
    let own = workspace.root().unwrap().join("same.txt");
    write(&own, file("top", 7));
    apply(&workspace).await.unwrap();
    scene.write("same.txt", file("TOP", 7));
    assert!(workspace.apply(Apply::Really).await.unwrap().already);
    assert_eq!(scene.read("same.txt"), file("TOP", 7));
    write(&own, file("top", 8));
    apply(&workspace).await.unwrap();
    assert_eq!(scene.read("same.txt"), file("TOP", 8));
    // It is taken back there as well.
    write(&own, file("top", 6));
    apply(&workspace).await.unwrap();
    assert_eq!(scene.read("same.txt"), file("TOP", 6));
}

/// Bug: what was applied could not be taken back after git had cleared its store.
#[tokio::test]
async fn git_keeps_what_was_taken_over() {
    let scene = Scene::repository();
    let workspace = scene.worktree("r1").await.unwrap();
    let root = workspace.root().unwrap().to_owned();
    write(&root.join("made.txt"), "x\n");
    apply(&workspace).await.unwrap();
    fs::remove_file(root.join("made.txt")).unwrap();
    scene.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(apply(&workspace).await.unwrap(), ["deleted made.txt +0 -1"]);
    assert!(!scene.project().join("made.txt").exists());
    workspace.discard().await.unwrap();
    assert_eq!(scene.git(&["for-each-ref", "refs/convoke"]), "");
    assert_eq!(scene.git(&["branch", "--list", "convoke/*"]), "");
}
