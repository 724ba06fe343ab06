//! Files that run later stay as they were, and git works all the same; each test once for each backend.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use convoke::Programs;
use convoke::config::Config;
use convoke::core::Mode;
use convoke::journal::Store;
use convoke::prelude::*;
use convoke_testkit::skip;

/// A project in a repository, with a remote beside it and a state directory.
struct Place {
    directory: tempfile::TempDir,
    runtime: Runtime,
}

const BACKENDS: [&str; 2] = ["landlock", "bubblewrap"];

impl Place {
    async fn new(backend: &str) -> Option<Self> {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["project", "home", "remote.git", "state"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        let config = json!({
            "sandbox": { "mode": "required", "backend": backend },
            "tools": { "allowedPaths": [root.join("project"), root.join("remote.git")] },
        });
        let config: Config = serde_json::from_value(config).unwrap();
        let variables = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME", root.join("home").display().to_string()),
            ("GIT_AUTHOR_NAME", "a".to_owned()),
            ("GIT_AUTHOR_EMAIL", "a@localhost".to_owned()),
            ("GIT_COMMITTER_NAME", "a".to_owned()),
            ("GIT_COMMITTER_EMAIL", "a@localhost".to_owned()),
        ];
        let variables: BTreeMap<_, _> =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let mut config = config;
        config.tools.environment = variables.keys().cloned().collect();
        let runtime = Runtime::builder(root.join("project"))
            .config(config)
            .home(Some(root.join("home")))
            .store(Some(Store::at(root.join("state"))))
            .mode(Mode::Full)
            .environment(variables)
            .build()
            .unwrap();
        if !matches!(runtime.programs(), Programs::Confined(..)) {
            let what = if backend == "bubblewrap" { "bwrap" } else { "Landlock" };
            skip(what, &runtime.programs().warning().unwrap_or_default());
            return None;
        }
        let place = Self { directory, runtime };
        place.works("git init -q -b main . && git init -q --bare -b main ../remote.git").await;
        place.works("echo one > file && git add file && git commit -qm one").await;
        Some(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("project").join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a line from a script: the policy would ask about what the line itself names.
    async fn run_script(&self, line: &str) -> ToolResult {
        std::fs::write(self.path("script.sh"), line).unwrap();
        self.run("bash script.sh").await
    }

    async fn run(&self, line: &str) -> ToolResult {
        let call = ToolCall::new("c", "run_command", json!({ "command": line }));
        self.runtime.executor().build().execute(call).await
    }

    async fn works(&self, line: &str) -> String {
        let ran = self.run(line).await;
        assert!(ran.success(), "`{line}`: {}", ran.text());
        assert!(!ran.text().contains("[sandbox]"), "`{line}`: {}", ran.text());
        ran.text()
    }
}

/// Returns the file that a notice says the change is kept in.
fn kept(notice: &str) -> PathBuf {
    Path::new(notice.split("cp '").nth(1).unwrap().split('\'').next().unwrap()).to_owned()
}

#[tokio::test]
async fn git_works_in_daily_use_without_a_notice() {
    for backend in BACKENDS {
        let Some(place) = Place::new(backend).await else { continue };
        // A remote is the user's to add: an address decides where pushes go.
        let config = place.path(".git/config");
        let remote = "[remote \"origin\"]\n\turl = ../remote.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n";
        std::fs::write(&config, format!("{}{remote}", place.text(".git/config"))).unwrap();
        place.works("git push -q -u origin main").await;
        assert!(place.text(".git/config").contains("[branch \"main\"]"), "{backend}");
        place.works("git checkout -q -b side && echo two >> file && git commit -qam two").await;
        place.works("git push -q -u origin side && git checkout -q main").await;
        place.works("git checkout -q -b other --track origin/side").await;
        place
            .works(
                "git checkout -q main && echo three > more && git add more && git commit -qm three",
            )
            .await;
        place.works("git checkout -q side && git rebase -q main && git checkout -q main").await;
        place
            .works("git pull -q && git stash list && git status --short && git log --oneline")
            .await;
    }
}

/// What a command tries, the file it is about, and whether that was there.
const CHANGES: &[(&str, &str)] = &[
    ("echo evil > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
    ("mkdir -p .git/hooks && echo evil > .git/hooks/post-checkout", ".git/hooks/post-checkout"),
    ("git config core.fsmonitor ./evil", ".git/config"),
    ("git config core.hooksPath evil", ".git/config"),
    ("git config alias.st '!evil'", ".git/config"),
    ("printf '[include]\\npath = ../evil\\n' >> .git/config", ".git/config"),
    ("echo /tmp > .git/commondir", ".git/commondir"),
    ("echo evil > convoke.yml", "convoke.yml"),
    ("echo evil > .mcp.json", ".mcp.json"),
    ("mkdir -p .convoke/agents && echo evil > .convoke/agents/a.md", ".convoke/agents/a.md"),
    ("mkdir -p .claude/agents && echo evil > .claude/agents/a.md", ".claude/agents/a.md"),
    ("setsid sh -c 'echo evil > .mcp.json'; sleep 0.05; exit 3", ".mcp.json"),
];

#[tokio::test]
async fn changes_of_files_that_run_later_are_put_back_kept_and_told() {
    for backend in BACKENDS {
        for (line, name) in CHANGES {
            let Some(place) = Place::new(backend).await else { break };
            let before = std::fs::read(place.path(name)).ok();
            let ran = place.run_script(line).await;
            assert_eq!(std::fs::read(place.path(name)).ok(), before, "{backend}: `{line}`");
            let text = ran.text();
            if backend == "bubblewrap" && text.contains("Read-only file system") {
                continue;
            }
            assert!(
                text.contains(&format!("{name}` decides what runs later")),
                "{backend}: {text}"
            );
            let kept = std::fs::read_to_string(kept(&text)).unwrap();
            assert!(kept.contains("evil") || kept.contains("/tmp"), "{backend}: {kept}");
            if let Some(value) = ran.value() {
                assert!(value["notices"].is_array(), "{backend}: {value}");
            }
            // The user accepts it; the next command leaves it alone.
            std::fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
            std::fs::write(place.path(name), "# accepted\n").unwrap();
            place.run("true").await;
            assert_eq!(place.text(name), "# accepted\n", "{backend}: `{line}`");
        }
    }
}

/// Files that are there, and ways to change them or to lead somewhere else.
#[tokio::test]
async fn files_that_run_later_and_are_there_stay_as_they_were() {
    let lines = [
        "echo evil > .git/hooks/pre-commit",
        "rm -rf .git/hooks; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
        "rm -rf .git/hooks; ln -s /tmp .git/hooks",
        "mv .git/hooks .git/old; ln -s ../../../home .git/hooks",
        "ln -sf /dev/null convoke.yml",
        "rm -f convoke.yml; mkdir convoke.yml",
        "rm convoke.yml",
        "chmod 777 .git/hooks/pre-commit",
        "mv .git .old; echo 'gitdir: /tmp' > .git",
    ];
    for backend in BACKENDS {
        for line in lines {
            let Some(place) = Place::new(backend).await else { break };
            std::fs::create_dir_all(place.path(".git/hooks")).unwrap();
            std::fs::write(place.path(".git/hooks/pre-commit"), "fine").unwrap();
            std::fs::write(place.path("convoke.yml"), "{}").unwrap();
            let ran = place.run_script(line).await;
            let said = format!("{backend}: `{line}`: {}", ran.text());
            if place.path(".git").is_dir() {
                let hooks = place.path(".git/hooks").symlink_metadata().unwrap();
                assert!(hooks.is_dir(), "{said}");
                assert_eq!(place.text(".git/hooks/pre-commit"), "fine", "{said}");
            } else {
                assert!(place.path(".git").symlink_metadata().is_err(), "{said}");
            }
            assert_eq!(place.text("convoke.yml"), "{}", "{said}");
            let home = place.directory.path().join("home");
            assert!(!home.join("pre-commit").exists(), "{said}");
        }
    }
}

/// A repository inside the project that looks like one, and hooks, run nothing where nobody trusts the project.
#[tokio::test]
async fn git_in_an_untrusted_project_starts_nothing() {
    for backend in BACKENDS {
        let Some(place) = Place::new(backend).await else { continue };
        std::fs::create_dir_all(place.path(".git/hooks")).unwrap();
        let hook = place.path(".git/hooks/pre-commit");
        std::fs::write(&hook, "#!/bin/sh\ntouch ran-hook\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&hook, mode).unwrap();
        let text = place
            .text(".git/config")
            .replace("[core]", "[core]\n\tfsmonitor = touch ran-monitor;false");
        std::fs::write(place.path(".git/config"), text).unwrap();
        place.run_script("git status; echo x >> file; git commit -qam x").await;
        place.run_script("git init -q --bare sub && cd sub && git config core.fsmonitor 'touch ran-bare' && git status").await;
        for name in ["ran-hook", "ran-monitor", "sub/ran-bare"] {
            assert!(!place.path(name).exists(), "{backend}: {name}");
        }
        let bare = place.run("cd sub && git rev-parse --git-dir").await;
        assert!(bare.text().contains("bareRepository"), "{backend}: {}", bare.text());
    }
}
