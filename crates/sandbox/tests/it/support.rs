//! A place with secrets and a place to work in, and a way to run commands between them.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use convoke_sandbox::{Backend, ConfinedSpawner, Confinement, Preflight};
use convoke_testkit::skip;
use convoke_tool::{Program, ReachedLimit, Spawner};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

/// Nothing here takes longer, unless something is wrong.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) reached: Option<ReachedLimit>,
}

impl Ran {
    pub(crate) fn succeeded(&self) -> bool {
        self.status.success()
    }

    pub(crate) fn ended_by(&self) -> Option<i32> {
        ended_by(self.status)
    }
}

/// Returns the signal that ended a program. `bwrap` tells it in its exit code, as shells do.
pub(crate) fn ended_by(status: ExitStatus) -> Option<i32> {
    status.signal().or_else(|| status.code().filter(|code| *code > 128).map(|code| code - 128))
}

/// A home with a secret, a project to work in, and something outside that nobody may write.
pub(crate) struct Place {
    root: PathBuf,
    /// Removes it all in the end; nobody's where the place is another's.
    _directory: Option<TempDir>,
    pub(crate) confinement: Confinement,
    pub(crate) backend: Backend,
}

/// Names the directory that places are made in, where it is not the usual one.
pub(crate) const DIRECTORY: &str = "CONVOKE_TEST_DIRECTORY";
pub(crate) const SECRET: &str = "canary-7f3a";

impl Place {
    /// Makes one; `None`, said and counted, where this backend cannot confine.
    pub(crate) fn new(backend: Backend) -> Option<Self> {
        // Not below the directory for temporary files, which may be written.
        let above = variable(DIRECTORY).unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").to_owned());
        let directory = tempfile::tempdir_in(above).unwrap();
        let place = |name: &str| directory.path().join(name);
        for name in ["home/.ssh", "project", "outside", "temporary"] {
            std::fs::create_dir_all(place(name)).unwrap();
        }
        write(&place("home/.ssh/id_rsa"), SECRET);
        write(&place("home/notes"), "nothing special");
        write(&place("outside/file"), "untouched");
        write(&place("project/file"), "hello");
        let root = directory.path().to_owned();
        let made = Self { _directory: Some(directory), ..Self::at(&root, backend) };
        let found = Preflight::for_confinement(&made.confinement, backend);
        match found.check(&made.confinement, backend) {
            Ok(()) => Some(made),
            Err(reason) => {
                skip(name(backend), &reason.to_string());
                None
            }
        }
    }

    /// Uses one that somebody else has made.
    pub(crate) fn at(root: &Path, backend: Backend) -> Self {
        let write = [root.join("project"), root.join("pipe")];
        let home = root.join("home");
        let confinement = Confinement::for_commands(write, root.join("temporary"), Some(&home));
        Self { root: root.to_owned(), _directory: None, confinement, backend }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        text(&self.path(name))
    }

    pub(crate) fn spawner(&self) -> ConfinedSpawner {
        ConfinedSpawner::with_backend(self.confinement.clone(), self.backend).unwrap()
    }

    pub(crate) fn program(&self, command: &[&str]) -> Program {
        let variables = ["PATH", "HOME", "RUSTUP_HOME", "CARGO_HOME", "PYENV_ROOT"];
        let mut environment: BTreeMap<String, String> = variables
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), variable(name)?)))
            .collect();
        environment.insert("TMPDIR".to_owned(), self.path("temporary").display().to_string());
        environment.insert("PLACE".to_owned(), self.root.display().to_string());
        Program::new(command.iter().map(ToString::to_string).collect(), self.path("project"))
            .environment(environment)
    }

    pub(crate) async fn run(&self, command: &[&str]) -> Ran {
        run(&self.spawner(), self.program(command)).await
    }

    /// Runs a line of shell. `$PLACE` is where everything is.
    pub(crate) async fn shell(&self, line: &str) -> Ran {
        self.run(&["sh", "-c", line]).await
    }

    pub(crate) async fn python(&self, script: &str) -> Ran {
        self.run(&["python3", "-c", script]).await
    }
}

/// Runs a program to its end.
pub(crate) async fn run(spawner: &dyn Spawner, program: Program) -> Ran {
    let mut process = spawner.spawn(program).await.unwrap();
    let mut streams = process.take_streams().unwrap();
    drop(streams.stdin);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let all = async {
        tokio::join!(
            process.wait(),
            streams.stdout.read_to_end(&mut stdout),
            streams.stderr.read_to_end(&mut stderr)
        )
    };
    let (status, ..) = tokio::time::timeout(PATIENCE, all).await.expect("it never ended");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let reached = process.reached();
    Ran { status: status.unwrap(), stdout: text(stdout), stderr: text(stderr), reached }
}

pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

pub(crate) fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

pub(crate) fn open(path: &Path) -> std::fs::File {
    std::fs::File::open(path).unwrap()
}

/// Returns what has to be there for a backend.
pub(crate) fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Landlock => "Landlock",
        Backend::Bubblewrap => "bwrap",
    }
}
