//! Workspaces, with real repositories, real programs and real hostility, in temporary directories.

mod copies;
mod hostile;
mod programs;
mod taken_over_again;
mod worktrees;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use convoke::workspace::{Apply, Changes};
use convoke::{Workspace, WorkspaceError, Workspaces};
use convoke_core::{RunId, WorkspaceKind};
use tempfile::TempDir;

/// A home with a project in it, and a place for workspaces beside.
struct Scene {
    _directory: TempDir,
    root: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("home/project")).unwrap();
        Self { _directory: directory, root }
    }

    /// A project that is a repository with two committed files and one that is ignored.
    fn repository() -> Self {
        let scene = Self::new();
        scene.git(&["init", "--quiet", "-b", "main"]);
        scene.write(".gitignore", "ignored/\n*.log\n");
        scene.write("a.txt", "one\ntwo\nthree\n");
        scene.write("src/b.rs", "fn b() {}\n");
        scene.git(&["add", "-A"]);
        scene.git(&["commit", "--quiet", "-m", "first"]);
        scene
    }

    fn project(&self) -> PathBuf {
        self.root.join("home/project")
    }

    fn store(&self) -> PathBuf {
        self.root.join("data/workspaces")
    }

    fn variables(&self) -> BTreeMap<String, String> {
        let home = self.root.join("home").to_str().unwrap().to_owned();
        [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()), ("HOME".to_owned(), home)]
            .into()
    }

    fn workspaces(&self) -> Workspaces {
        Workspaces::at(self.store())
            .environment(self.variables())
            .home(Some(self.root.join("home")))
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        write(&self.project().join(name), content);
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project().join(name)).unwrap()
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.project(), arguments)
    }

    #[track_caller]
    fn git_in(&self, place: &Path, arguments: &[&str]) -> String {
        let ran = Command::new("git")
            .args(["-c", "protocol.file.allow=always", "-c", "core.fsmonitor=false"])
            .args(arguments)
            .current_dir(place)
            .env_clear()
            .envs(self.variables())
            .envs([("GIT_AUTHOR_NAME", "t"), ("GIT_AUTHOR_EMAIL", "t@localhost")])
            .envs([("GIT_COMMITTER_NAME", "t"), ("GIT_COMMITTER_EMAIL", "t@localhost")])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    async fn worktree(&self, run: &str) -> Result<Workspace, WorkspaceError> {
        let run = RunId::new(run);
        self.workspaces().prepare(WorkspaceKind::Worktree, &run, &self.project()).await
    }

    async fn copy(&self, run: &str) -> Result<Workspace, WorkspaceError> {
        self.workspaces().prepare(WorkspaceKind::Copy, &RunId::new(run), &self.project()).await
    }
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// What was changed, a line a file.
fn told(changes: &Changes) -> Vec<String> {
    let line = |file: &convoke_core::FileChange| {
        let from = file.from.as_ref().map(|from| format!("{from} -> ")).unwrap_or_default();
        let lines = match (file.added, file.removed) {
            (Some(added), Some(removed)) => format!("+{added} -{removed}"),
            _ => "binary".to_owned(),
        };
        format!("{} {from}{} {lines}", file.change, file.path)
    };
    changes.files.iter().map(line).collect()
}

async fn changes(workspace: &Workspace) -> Vec<String> {
    told(&workspace.diff().await.unwrap())
}

async fn apply(workspace: &Workspace) -> Result<Vec<String>, WorkspaceError> {
    workspace.apply(Apply::Really).await.map(|changes| told(&changes))
}

/// The files there are below a directory, without those of git.
fn files(root: &Path) -> Vec<String> {
    fn walk(root: &Path, directory: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                walk(root, &path, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(root, root, &mut found);
    found.sort();
    found
}
