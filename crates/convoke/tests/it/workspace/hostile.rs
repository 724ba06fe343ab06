//! Repositories and runs that want more than they get.

use std::fs;

use convoke::WorkspaceError;
use convoke::config::Config;

use super::{Scene, apply, changes, files, write};

/// Lets a repository run programs wherever git would run one. Each would leave a file behind, in a place
/// where git itself may write.
fn booby_trapped() -> Scene {
    let scene = Scene::repository();
    fs::create_dir_all(scene.store()).unwrap();
    let canary = |name: &str| format!("touch {}/canary-{name}; cat", scene.store().display());
    for (key, name) in [
        ("filter.evil.smudge", "smudge"),
        ("filter.evil.clean", "clean"),
        ("core.fsmonitor", "fsmonitor"),
        ("diff.evil.textconv", "textconv"),
        ("diff.evil.command", "command"),
        ("diff.external", "external"),
        ("core.sshCommand", "ssh"),
        ("core.alternateRefsCommand", "alternate"),
    ] {
        scene.git(&["config", key, &canary(name)]);
    }
    scene.git(&["config", "filter.evil.required", "true"]);
    // These are there only on the branch of a worktree, and only in the repository's directory for one.
    for (name, condition) in
        [("branch", "onbranch:convoke/**"), ("place", "gitdir:**/worktrees/**")]
    {
        let smudge = format!("[filter \"{name}\"]\n\tsmudge = \"{}\"\n", canary(name));
        write(&scene.project().join(format!(".git/{name}.config")), smudge);
        scene.git(&["config", &format!("includeIf.{condition}.path"), &format!("{name}.config")]);
    }
    for hook in ["post-checkout", "post-index-change", "reference-transaction", "pre-commit"] {
        let path = scene.project().join(".git/hooks").join(hook);
        write(&path, format!("#!/bin/sh\n{}\n", canary(hook)));
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    scene.write(
        ".gitattributes",
        "* filter=evil diff=evil\n/src/* filter=branch\n.gitignore filter=place\n",
    );
    scene.write("a.txt", "changed\n");
    scene
}

fn canaries(scene: &Scene) -> Vec<String> {
    let names = fs::read_dir(scene.store()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("canary")).collect()
}

#[tokio::test]
async fn nothing_that_a_repository_configures_runs() {
    for mode in ["auto", "off"] {
        let scene = booby_trapped();
        let mut config = Config::default();
        config.sandbox.mode = serde_json::from_value(mode.into()).unwrap();
        let workspaces = scene.workspaces().sandbox(config.sandbox);
        let (kind, run) = (convoke_core::WorkspaceKind::Worktree, "r1".into());
        let workspace = workspaces.prepare(kind, &run, &scene.project()).await.unwrap();
        let root = workspace.root().unwrap().to_owned();
        assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "changed\n");
        assert_eq!(changes(&workspace).await, [""; 0]);
        write(&root.join("a.txt"), "by the run\n");
        assert_eq!(apply(&workspace).await.unwrap(), ["modified a.txt +1 -1"]);
        assert_eq!(scene.read("a.txt"), "by the run\n");
        workspace.discard().await.unwrap();
        assert_eq!(canaries(&scene), [""; 0], "sandbox {mode}");
    }
}

/// Without this, the test above would also pass if nothing could ever leave a canary.
#[test]
fn git_alone_would_run_it() {
    let scene = booby_trapped();
    let place = scene.root.join("plain");
    scene.git(&["add", ".gitattributes"]);
    scene.git(&["commit", "--quiet", "-m", "second"]);
    let place = place.to_str().unwrap();
    scene.git(&["worktree", "add", "--quiet", "-b", "convoke/plain", place]);
    for name in ["smudge", "branch", "place"] {
        assert!(canaries(&scene).contains(&format!("canary-{name}")), "{:?}", canaries(&scene));
    }
}

/// Bug: a filter was overruled by a name that was made text, which is another one.
#[tokio::test]
async fn a_filter_whose_name_is_no_text_is_refused() {
    for mode in ["auto", "off"] {
        let scene = booby_trapped();
        let mut settings = fs::read(scene.project().join(".git/config")).unwrap();
        settings.extend_from_slice(b"[filter \"\xff\"]\n\tclean = ");
        settings.extend_from_slice(
            format!("\"touch {}/canary-name; cat\"\n", scene.store().display()).as_bytes(),
        );
        fs::write(scene.project().join(".git/config"), settings).unwrap();
        scene.write(".gitattributes", b"* filter=\xff\n");
        let mut config = Config::default();
        config.sandbox.mode = serde_json::from_value(mode.into()).unwrap();
        let workspaces = scene.workspaces().sandbox(config.sandbox);
        let (kind, run) = (convoke_core::WorkspaceKind::Worktree, "r1".into());
        let made = workspaces.prepare(kind, &run, &scene.project()).await;
        assert_eq!(canaries(&scene), [""; 0], "sandbox {mode}");
        let error = made.map(drop).unwrap_err();
        assert!(matches!(error, WorkspaceError::NoRepository { .. }), "{error:?}");
        assert!(error.to_string().contains("filter"), "{error}");
    }
}

#[tokio::test]
async fn a_repository_that_says_its_files_are_elsewhere_is_refused() {
    let scene = Scene::repository();
    let home = scene.root.join("home");
    scene.git(&["config", "core.worktree", home.to_str().unwrap()]);
    write(&home.join("secret"), "of the user");
    let error = scene.worktree("r1").await.unwrap_err();
    assert!(matches!(error, WorkspaceError::NoRepository { .. }), "{error:?}");
    assert!(error.to_string().contains("core.worktree"), "{error}");
}

#[tokio::test]
async fn a_run_that_leads_git_astray_is_not_followed() {
    let scene = Scene::repository();
    let workspace = scene.worktree("r1").await.unwrap();
    let root = workspace.root().unwrap().to_owned();
    let admin = scene.project().join(".git/worktrees/r1");
    let evil = root.join("evil.git");
    fs::create_dir(&evil).unwrap();
    scene.git_in(&evil, &["init", "--quiet", "--bare"]);
    let canary = format!("touch {}/canary-astray; false", scene.store().display());
    scene.git_in(&evil, &["config", "core.fsmonitor", &canary]);
    scene.git_in(&evil, &["config", "core.worktree", "/"]);
    let (dot_git, commondir) = (root.join(".git"), admin.join("commondir"));
    let before = [&dot_git, &commondir].map(|path| fs::read_to_string(path).unwrap());
    fs::write(&dot_git, format!("gitdir: {}\n", evil.display())).unwrap();
    fs::write(&commondir, format!("{}\n", evil.display())).unwrap();
    fs::write(admin.join("config.worktree"), "[core]\n\tfsmonitor = x\n").unwrap();
    fs::remove_dir_all(evil.join("hooks")).unwrap();
    write(&root.join("a.txt"), "by the run\n");
    let changes = workspace.diff().await.unwrap();
    assert!(changes.files.iter().any(|file| file.path == "a.txt"), "{changes:?}");
    let mended = changes.notes.iter().filter(|note| note.contains("put back")).count();
    assert_eq!(mended, 2, "{changes:?}");
    let after = [&dot_git, &commondir].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(before, after, "they are put back for whoever uses git there later");
    assert!(!admin.join("config.worktree").exists());
    assert_eq!(canaries(&scene), [""; 0]);
}

#[tokio::test]
async fn a_repository_with_links_out_of_it_gives_no_rights_there() {
    for name in ["objects", "refs/heads/convoke", "logs", "worktrees"] {
        let scene = Scene::repository();
        let target = scene.root.join("home/target");
        fs::create_dir_all(&target).unwrap();
        let place = scene.project().join(".git").join(name);
        if place.exists() {
            // What was there is there, so that the repository goes on working.
            fs::rename(&place, target.join("moved")).unwrap();
            std::os::unix::fs::symlink(target.join("moved"), &place).unwrap();
        } else {
            std::os::unix::fs::symlink(&target, &place).unwrap();
        }
        let before = files(&target);
        let error = scene.worktree("r1").await.map(drop).unwrap_err();
        assert!(matches!(error, WorkspaceError::Files { .. }), "{name}: {error:?}");
        assert_eq!(files(&target), before, "{name}");
    }
}

#[tokio::test]
async fn a_folder_cannot_lead_to_a_repository_that_does_not_know_it() {
    let scene = Scene::repository();
    let other = Scene::repository();
    fs::remove_dir_all(scene.project().join(".git")).unwrap();
    let led = format!("gitdir: {}\n", other.project().join(".git").display());
    fs::write(scene.project().join(".git"), led).unwrap();
    let error = scene.worktree("r1").await.map(drop).unwrap_err();
    assert!(error.to_string().contains("does not know it"), "{error}");
    assert_eq!(other.git(&["branch", "--list", "convoke/*"]), "");
}

#[tokio::test]
async fn a_worktree_and_a_submodule_of_the_user_are_known() {
    let scene = Scene::repository();
    let second = scene.root.join("home/second");
    scene.git(&["worktree", "add", "--quiet", second.to_str().unwrap()]);
    write(&second.join("a.txt"), "in the second\n");
    let (kind, run) = (convoke_core::WorkspaceKind::Worktree, "r1".into());
    let workspace = scene.workspaces().prepare(kind, &run, &second).await.unwrap();
    let own = workspace.root().unwrap().join("a.txt");
    assert_eq!(fs::read_to_string(&own).unwrap(), "in the second\n");
    write(&own, "by the run\n");
    apply(&workspace).await.unwrap();
    assert_eq!(fs::read_to_string(second.join("a.txt")).unwrap(), "by the run\n");

    let other = Scene::repository();
    let url = other.project().to_str().unwrap().to_owned();
    scene.git(&["submodule", "--quiet", "add", &url, "sub"]);
    let sub = scene.project().join("sub");
    let workspace = scene.workspaces().prepare(kind, &"r2".into(), &sub).await.unwrap();
    assert_eq!(changes(&workspace).await, [""; 0]);
}
