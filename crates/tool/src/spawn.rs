//! Starting processes. Tools ask the [`Spawner`] of their context; none starts one by itself.
//!
//! A process started here leads its own process group, and the whole group ends with it: when it is
//! killed, when it is dropped, and when its leader has ended and left others behind. How it is
//! confined is the spawner's business; the plain one here does not confine, and has to be asked for.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use convoke_core::{Kind, ToolError};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};

use crate::reached::ReachedLimit;

/// A program to start.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// All of its environment.
    pub environment: BTreeMap<String, String>,
    /// Where it runs.
    pub working_directory: PathBuf,
    /// The same, opened. Where the system allows it, the process starts in what this handle stands for,
    /// so that a link put in the path's place meanwhile leads nowhere.
    pub directory_handle: Option<Arc<OwnedFd>>,
}

impl Program {
    /// Describes a program.
    pub fn new(command: Vec<String>, working_directory: PathBuf) -> Self {
        Self { command, environment: BTreeMap::new(), working_directory, directory_handle: None }
    }

    /// Starts it in this open directory.
    #[must_use]
    pub fn in_directory(mut self, handle: OwnedFd) -> Self {
        self.directory_handle = Some(Arc::new(handle));
        self
    }

    /// Gives it this environment.
    #[must_use]
    pub fn environment(mut self, environment: BTreeMap<String, String>) -> Self {
        self.environment = environment;
        self
    }

    /// Starts it with piped streams, after `prepare` has had its say. For spawners: what the process may
    /// do, and how it ends, is theirs.
    pub fn start(&self, prepare: impl FnOnce(&mut Command)) -> Result<Child, ToolError> {
        let Some((name, arguments)) = self.command.split_first() else {
            return Err(ToolError::validation(["the command is empty"]));
        };
        #[expect(clippy::disallowed_methods, reason = "every spawner starts programs here")]
        let mut command = Command::new(name);
        command
            .args(arguments)
            .env_clear()
            .envs(&self.environment)
            .current_dir(starting_point(self))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        prepare(&mut command);
        command.spawn().map_err(|error| cannot_start(name, self, &error))
    }
}

/// The standard streams of a process.
pub struct Streams {
    /// What it reads.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// What it writes.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// What it complains about.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
}

impl Debug for Streams {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Streams")
    }
}

/// A running process with everything it started.
#[async_trait]
pub trait Process: Send + Debug {
    /// Hands out the standard streams, once.
    fn take_streams(&mut self) -> Option<Streams>;

    /// Waits until the process itself has ended.
    async fn wait(&mut self) -> io::Result<ExitStatus>;

    /// Returns the limit that the process reached, once it has been waited for and if that is known.
    fn reached(&self) -> Option<ReachedLimit> {
        None
    }

    /// Asks the whole group to end.
    fn terminate(&mut self);

    /// Ends the whole group. Dropping a process does the same.
    fn kill(&mut self);

    /// Ends what is left of the group, and returns what a user has to know about files that it changed. To be
    /// called once, when the process has ended or was stopped.
    async fn settle(&mut self) -> Vec<String> {
        self.kill();
        Vec::new()
    }
}

/// Starts processes.
#[async_trait]
pub trait Spawner: Send + Sync + Debug {
    /// Starts one, or says why not.
    async fn spawn(&self, program: Program) -> Result<Box<dyn Process>, ToolError>;
}

/// Starts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProcesses;

#[async_trait]
impl Spawner for NoProcesses {
    async fn spawn(&self, _: Program) -> Result<Box<dyn Process>, ToolError> {
        Err(ToolError::permission("programs are not allowed to run here")
            .with_details(json!({ "needs": Kind::Execute })))
    }
}

/// Starts processes with all the rights of this one.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnconfinedSpawner;

#[async_trait]
impl Spawner for UnconfinedSpawner {
    async fn spawn(&self, program: Program) -> Result<Box<dyn Process>, ToolError> {
        let child = program.start(|command| {
            command.process_group(0).kill_on_drop(true);
        })?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Box::new(Group { child, group }))
    }
}

/// On Linux an open directory has a path that no one else can change.
fn starting_point(program: &Program) -> PathBuf {
    match &program.directory_handle {
        Some(handle) if cfg!(target_os = "linux") => {
            PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
        }
        _ => program.working_directory.clone(),
    }
}

fn cannot_start(name: &str, program: &Program, error: &io::Error) -> ToolError {
    let what = match error.kind() {
        io::ErrorKind::NotFound if program.working_directory.is_dir() => {
            ToolError::not_found(format!("program `{name}` not found"))
        }
        io::ErrorKind::NotFound => ToolError::not_found(format!(
            "working directory `{}` not found",
            program.working_directory.display()
        )),
        _ => ToolError::failed(format!("program `{name}` cannot be started: {error}")),
    };
    what.caused_by(error)
}

#[derive(Debug)]
struct Group {
    child: Child,
    group: Option<Pid>,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may be gone already, which is what is wanted.
            kill_process_group(group, signal).ok();
        }
    }
}

#[async_trait]
impl Process for Group {
    fn take_streams(&mut self) -> Option<Streams> {
        Some(Streams {
            stdin: Box::new(self.child.stdin.take()?),
            stdout: Box::new(self.child.stdout.take()?),
            stderr: Box::new(self.child.stderr.take()?),
        })
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    /// Only once: after that the number of the group may belong to somebody else.
    fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.group = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
