//! A home, a project in it, and the command to run there.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) use convoke_testkit::skip;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Scene {
    _directory: TempDir,
    root: PathBuf,
    variables: Vec<(String, String)>,
}

/// How a command ended, with the temporary directory called `[root]`.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Scene {
    /// An empty project in an empty home.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("home/project")).unwrap();
        Self { _directory: directory, root, variables: Vec::new() }
    }

    /// Writes a file of the project.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Writes the user's configuration.
    pub(crate) fn user(self, text: &str) -> Self {
        let directory = self.root.join("home/.config/convoke");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("convoke.yml"), text).unwrap();
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("home/project")
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project().join(name)).unwrap()
    }

    /// The command, ready to be changed and started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.program(&[&[env!("CARGO_BIN_EXE_convoke")], arguments].concat())
    }

    /// A program with its arguments, in the same world.
    pub(crate) fn program(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .current_dir(self.project())
            .env_clear()
            .env("HOME", self.root.join("home"))
            .env("XDG_CONFIG_HOME", self.root.join("home/.config"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.ended(&self.command(arguments).output().unwrap())
    }

    /// Runs the command with something on standard input.
    pub(crate) fn run_with(&self, input: &[u8], arguments: &[&str]) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feed = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let ended = self.ended(&child.wait_with_output().unwrap());
        feed.join().unwrap();
        ended
    }

    /// Runs a command that ends well, and returns what it printed.
    #[track_caller]
    pub(crate) fn stdout(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    }

    /// Runs a command and reads the JSON it printed, whatever its exit code.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(arguments);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    pub(crate) fn ended(&self, output: &Output) -> Ran {
        Ran {
            code: output.status.code(),
            stdout: self.readable(&output.stdout),
            stderr: self.readable(&output.stderr),
        }
    }

    pub(crate) fn readable(&self, bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace(self.root.to_str().unwrap(), "[root]")
    }
}

impl Ran {
    /// Everything that was seen, as one text.
    pub(crate) fn shown(&self) -> String {
        let code = self.code.map_or("by a signal".to_owned(), |code| code.to_string());
        format!("{}--- stderr\n{}--- exit {code}", self.stdout, self.stderr)
    }
}
