//! `convoke config trust`, `untrust` and `trusted`: whose files may decide things.

mod shown;

use std::path::{Path, PathBuf};

use clap::Args;
use convoke::agent::files::{list, usual_directories};
use convoke::config::{PROJECT_FILE_NAMES, Trust as State, grants};
use convoke_core::ExitCode;

use self::shown::{ServerFiles, tell};
use crate::commands::ask;
use crate::failure::Failure;
use crate::output::{Output, spelled};
use crate::session::Session;
use crate::trust::{TrustFile, file_in, file_of, listed_as};

const AFTER_TRUST: &str = "\
All that the files would decide is shown first, whole: command lines, variables, headers and addresses, each on a line \
of its own, with control characters spelled out. Only what is nothing but a key, as apiKey, is masked.

A file that is not trusted may set harmless values only: nothing that runs a program, names a server or \
reads a variable. What is trusted is what the file says now: once it is changed, by a pull request or by a \
model, it is not trusted until you look at it again.

The agents and the .mcp.json of the folder are trusted with it, also after they are changed. A folder without a \
convoke.yml is trusted for these alone; a convoke.yml that comes later is not.

Examples:
  convoke config trust
  convoke config trust ~/work --yes";

const AFTER_UNTRUST: &str = "\
Examples:
  convoke config untrust
  convoke config untrust ~/work";

const AFTER_TRUSTED: &str = "\
Examples:
  convoke config trusted
  convoke config trusted --json";

/// Show what the files of this project decide, and trust them
#[derive(Debug, Args)]
#[command(after_help = AFTER_TRUST)]
pub(crate) struct Trust {
    /// The folder; without it, the one with the project's file
    directory: Option<PathBuf>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Stop trusting this project, or a folder
#[derive(Debug, Args)]
#[command(after_help = AFTER_UNTRUST)]
pub(crate) struct Untrust {
    /// The folder; without it, the one with the project's file
    directory: Option<PathBuf>,
}

/// List the project files that are trusted
#[derive(Debug, Args)]
#[command(after_help = AFTER_TRUSTED)]
pub(crate) struct Trusted {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Trust {
    /// Runs the command.
    pub(super) fn run(&self, session: &Session<'_>, output: &Output) -> Result<ExitCode, Failure> {
        let list = TrustFile::read(session.environment())?;
        let file = project_file(self.directory.as_deref(), session)?;
        let grants = grants(&file)?;
        let folder = file.parent().filter(|_| !file.exists());
        let shown = spelled(&folder.unwrap_or(&file).display().to_string());
        if list.store().trust(&file) == State::Pinned(grants.digest) {
            say(output, &format!("{shown} is trusted already"));
            return Ok(ExitCode::Done);
        }
        let servers = ServerFiles::of(&file, session)?;
        let has_others = file.parent().is_some_and(has_agents) || servers.is_some();
        if let Some(folder) = folder.filter(|_| !has_others) {
            return Err(nothing_in(folder));
        }
        if !(self.yes && output.is_quiet()) {
            tell(&file, &grants, &servers, output);
        }
        let question = match folder {
            None => format!("Trust {shown} as it is now?"),
            Some(_) => format!("Trust the agents and MCP servers of {shown}?"),
        };
        if !self.yes && !agrees(&question, output)? {
            say(output, &format!("{shown} is not trusted"));
            return Ok(ExitCode::Failed);
        }
        TrustFile::change(session.environment(), |store| {
            store
                .add(&file, grants.digest)
                .map_err(|error| Failure::usage("the file cannot be listed").because(&error))
        })?;
        say(
            output,
            &match folder {
                None if has_others => format!(
                    "trusted {shown} as it is now, and the agents and MCP servers beside it also after they are changed"
                ),
                None => format!("trusted {shown} as it is now"),
                Some(_) => format!(
                    "trusted the agents and MCP servers of {shown}, also after they are changed"
                ),
            },
        );
        Ok(ExitCode::Done)
    }
}

/// Tells whether there are agents in files of their own.
fn has_agents(folder: &Path) -> bool {
    usual_directories(Some(folder), None, None).iter().any(|at| !list(at).is_empty())
}

/// Says no to a folder in which there is nothing that trust is needed for.
fn nothing_in(folder: &Path) -> Failure {
    let message = format!("there is nothing in `{}` that has to be trusted", folder.display());
    Failure::usage(message).hint("that would be a convoke.yml, files of agents, or a .mcp.json")
}

/// Asks whoever sits at the terminal.
fn agrees(question: &str, output: &Output) -> Result<bool, Failure> {
    ask::yes(question, output).ok_or_else(|| {
        Failure::usage("nobody is there to say whether it is to be trusted")
            .hint("`--yes` trusts it without a question")
    })
}

impl Untrust {
    /// Runs the command. A folder that is gone can still be taken off the list.
    pub(super) fn run(&self, session: &Session<'_>, output: &Output) -> Result<ExitCode, Failure> {
        let meant = match &self.directory {
            Some(path) => {
                let path = session.absolute(path);
                path.canonicalize().unwrap_or(path)
            }
            None => project_file(None, session)?,
        };
        let removed = TrustFile::change(session.environment(), |store| Ok(store.remove(&meant)))?;
        let was = if removed { "no longer" } else { "not" };
        // A folder without a file of its own is listed by the one it could have.
        let is_file = PROJECT_FILE_NAMES.iter().any(|name| meant.ends_with(name));
        let shown = meant.parent().filter(|_| is_file && !meant.exists()).unwrap_or(&meant);
        say(output, &format!("{} is {was} trusted", shown.display()));
        Ok(ExitCode::Done)
    }
}

impl Trusted {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let file = TrustFile::read(session.environment())?;
        let shown: Vec<String> =
            file.store().files().map(|path| path.display().to_string()).collect();
        if self.json {
            output.json(&shown);
        } else {
            for path in &shown {
                output.out.line(output.out.printable(path));
            }
            if shown.is_empty() {
                say(output, &format!("no project file is trusted ({})", file.path().display()));
            }
        }
        Ok(ExitCode::Done)
    }
}

/// Returns the project's file that is meant, as it is listed: the one in the folder that was named, or the
/// one that holds here. Where there is none, it is the one that could be there.
fn project_file(named: Option<&Path>, session: &Session<'_>) -> Result<PathBuf, Failure> {
    let found = match named {
        Some(folder) => {
            let folder = session.absolute(folder);
            let mut files = PROJECT_FILE_NAMES.iter().map(|name| folder.join(name));
            Some(files.find(|file| file.exists()).unwrap_or_else(|| file_in(&folder)))
        }
        None => file_of(&session.sources()?),
    };
    let folder =
        named.map_or_else(|| session.working_directory().to_owned(), |f| session.absolute(f));
    found.as_deref().and_then(listed_as).ok_or_else(|| {
        Failure::usage(format!("`{}` is no project that can be trusted", folder.display()))
            .hint("it is your home directory, or is not there")
    })
}

fn say(output: &Output, text: &str) {
    if !output.is_quiet() {
        output.err.line(output.err.printable(text));
    }
}
