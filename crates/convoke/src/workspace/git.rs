//! Starting git in a repository that nobody vouches for.
//!
//! What a repository configures to run (hooks, filters, monitors, external diffs) never runs here: the
//! settings are overruled one by one, filters by their names. Beside that, git is confined: it writes only
//! where a step needs it, and talks to nobody. It takes no setting from the environment but where the
//! user's own configuration is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use convoke_core::{ErrorKind, ToolError};
use convoke_sandbox::{Confinement, Limits, Network, secrets_of};
use convoke_tool::{Program, Spawner, UnconfinedSpawner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::WorkspaceError;
use crate::config::{SandboxConfig, SandboxMode};

/// How long a step may take. A checkout of a large repository is the longest.
const PATIENCE: Duration = Duration::from_mins(5);
/// How much a step may print.
const MOST_OUTPUT: u64 = 256 * 1024 * 1024;
/// How much of what git complains about is told.
const MOST_SAID: u64 = 4 * 1024;

/// What git needs to be found, and to find what its user configured.
const INHERITED: &[&str] = &["PATH", "HOME", "XDG_CONFIG_HOME"];

/// What holds whatever a repository says.
const SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.sshCommand", "false"),
    ("core.splitIndex", "false"),
    // Whether a file changed is not for its times alone to say.
    ("core.trustctime", "true"),
    ("core.checkStat", "default"),
    ("credential.helper", ""),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
];

const VARIABLES: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // A repository may allow protocols one by one; this none of them gets past.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_AUTHOR_NAME", "convoke"),
    ("GIT_AUTHOR_EMAIL", "convoke@localhost"),
    ("GIT_COMMITTER_NAME", "convoke"),
    ("GIT_COMMITTER_EMAIL", "convoke@localhost"),
];

/// What a step of git may write.
#[derive(Clone, Debug, Default)]
pub(super) struct Rights(pub(super) Vec<PathBuf>);

/// Git, in one directory, with the rights of one step.
#[derive(Clone, Debug)]
pub(super) struct Git {
    spawner: Arc<dyn Spawner>,
    environment: BTreeMap<String, String>,
    at: PathBuf,
    settings: Vec<(String, String)>,
}

impl Git {
    pub(super) fn new(
        sandbox: &SandboxConfig,
        variables: &BTreeMap<String, String>,
        home: Option<&Path>,
        rights: Rights,
        at: &Path,
    ) -> Result<Self, WorkspaceError> {
        let spawner: Arc<dyn Spawner> = if sandbox.mode == SandboxMode::Off {
            Arc::new(UnconfinedSpawner)
        } else {
            let confinement = Confinement {
                read: vec![PathBuf::from("/")],
                write: rights.0,
                hidden: secrets_of(home),
                network: Network::None,
                limits: Limits { processes: Some(256), ..Limits::default() },
                ..Confinement::default()
            };
            let confined = sandbox.backed(confinement);
            Arc::new(confined.map_err(|why| WorkspaceError::NotConfined(why.to_string()))?)
        };
        let inherited = INHERITED.iter().filter_map(|name| {
            variables.get(*name).map(|value| ((*name).to_owned(), value.clone()))
        });
        let own = VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let settings = SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Ok(Self {
            spawner,
            environment: inherited.chain(own).collect(),
            at: at.to_owned(),
            settings: settings.collect(),
        })
    }

    /// Works with this repository, whatever lies around.
    pub(super) fn repository(self, directory: &Path) -> Self {
        self.variable("GIT_DIR", directory)
    }

    /// Works with these files.
    pub(super) fn files(self, root: &Path) -> Self {
        self.variable("GIT_WORK_TREE", root)
    }

    /// Notes in this file what it knows about them.
    pub(super) fn index(self, file: &Path) -> Self {
        self.variable("GIT_INDEX_FILE", file)
    }

    fn variable(mut self, name: &str, path: &Path) -> Self {
        self.environment.insert(name.to_owned(), path.to_string_lossy().into_owned());
        self
    }

    /// Overrules every filter that is configured: none of them runs. Files that git keeps through one
    /// are then seen as git keeps them. What is configured depends on the repository's directory and its branch, so
    /// this holds for those alone.
    pub(super) async fn without_filters(mut self) -> Result<Self, WorkspaceError> {
        let listed = self.run(&["config", "--null", "--name-only", "--list"]).await?;
        let keys = listed.split(|byte| *byte == 0).filter(|key| key.starts_with(b"filter."));
        for key in keys {
            // Made text, the name would be that of another filter.
            let Ok(key) = std::str::from_utf8(key) else {
                let why =
                    "a filter in its configuration has a name that is not UTF-8 text".to_owned();
                return Err(WorkspaceError::NoRepository { path: self.at, why });
            };
            let Some((filter, _)) = key.rsplit_once('.') else { continue };
            for (what, value) in
                [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")]
            {
                let setting = (format!("{filter}.{what}"), value.to_owned());
                if !self.settings.contains(&setting) {
                    self.settings.push(setting);
                }
            }
        }
        Ok(self)
    }

    /// Runs a command that has to work, and returns what it prints.
    pub(super) async fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, WorkspaceError> {
        self.feed(arguments, Vec::new()).await
    }

    /// Runs a command that has to work, with something to read.
    pub(super) async fn feed(
        &self,
        arguments: &[&str],
        input: Vec<u8>,
    ) -> Result<Vec<u8>, WorkspaceError> {
        let ended = self.start(arguments, input).await?;
        if ended.worked { Ok(ended.printed) } else { Err(failed(arguments, ended.said)) }
    }

    /// Runs a command that may well fail: then there is nothing.
    pub(super) async fn try_run(
        &self,
        arguments: &[&str],
    ) -> Result<Option<Vec<u8>>, WorkspaceError> {
        let ended = self.start(arguments, Vec::new()).await?;
        Ok(ended.worked.then_some(ended.printed))
    }

    /// Runs a command and returns what it prints as a line of text.
    pub(super) async fn line(&self, arguments: &[&str]) -> Result<String, WorkspaceError> {
        let printed = self.run(arguments).await?;
        Ok(String::from_utf8_lossy(&printed).trim_end_matches('\n').to_owned())
    }

    async fn start(&self, arguments: &[&str], input: Vec<u8>) -> Result<Ended, WorkspaceError> {
        let ended = tokio::time::timeout(PATIENCE, self.to_the_end(arguments, input)).await;
        ended.unwrap_or_else(|_| Err(failed(arguments, "it did not end".to_owned())))
    }

    async fn to_the_end(
        &self,
        arguments: &[&str],
        input: Vec<u8>,
    ) -> Result<Ended, WorkspaceError> {
        let mut environment = self.environment.clone();
        environment.insert("GIT_CONFIG_COUNT".to_owned(), self.settings.len().to_string());
        for (number, (key, value)) in self.settings.iter().enumerate() {
            environment.insert(format!("GIT_CONFIG_KEY_{number}"), key.clone());
            environment.insert(format!("GIT_CONFIG_VALUE_{number}"), value.clone());
        }
        let command = [&["git"], arguments].concat().into_iter().map(str::to_owned).collect();
        let program = Program::new(command, self.at.clone()).environment(environment);
        let mut process = self.spawner.spawn(program).await.map_err(not_started)?;
        let Some(streams) = process.take_streams() else {
            return Err(failed(arguments, "it has no streams".to_owned()));
        };
        let mut stdin = streams.stdin;
        let feed = async move {
            // One that does not read to the end says why itself.
            stdin.write_all(&input).await.ok();
            stdin.shutdown().await.ok();
        };
        let (mut printed, mut said) = (Vec::new(), Vec::new());
        let mut stdout = streams.stdout.take(MOST_OUTPUT + 1);
        let mut stderr = streams.stderr;
        let read = async { stdout.read_to_end(&mut printed).await };
        let complain = async {
            let read = (&mut stderr).take(MOST_SAID).read_to_end(&mut said).await;
            tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await.ok();
            read
        };
        let ((), read, complained) = tokio::join!(feed, read, complain);
        let broken = |error: std::io::Error| failed(arguments, error.to_string());
        read.and(complained).map_err(broken)?;
        if printed.len() as u64 > MOST_OUTPUT {
            let most = MOST_OUTPUT / (1024 * 1024);
            return Err(failed(arguments, format!("it printed more than {most} MiB")));
        }
        let status = process.wait().await.map_err(broken)?;
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        Ok(Ended { worked: status.success(), printed, said })
    }

    /// Runs a command, and returns what it said if it failed.
    pub(super) async fn complaint(
        &self,
        arguments: &[&str],
    ) -> Result<Option<String>, WorkspaceError> {
        let ended = self.start(arguments, Vec::new()).await?;
        Ok((!ended.worked).then_some(ended.said))
    }
}

struct Ended {
    worked: bool,
    printed: Vec<u8>,
    said: String,
}

fn failed(arguments: &[&str], said: String) -> WorkspaceError {
    let command = arguments.first().copied().unwrap_or_default().to_owned();
    WorkspaceError::Git { command, said }
}

fn not_started(error: ToolError) -> WorkspaceError {
    match error.kind {
        ErrorKind::NotFound => WorkspaceError::NoGit(error.message),
        ErrorKind::Permission => WorkspaceError::NotConfined(error.message),
        _ => WorkspaceError::Git { command: String::new(), said: error.message },
    }
}
