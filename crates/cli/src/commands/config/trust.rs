//! `convoke config trust`, `untrust` and `trusted`: which projects may decide things.

mod shown;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use convoke::agent::files::{list, usual_directories};
use convoke::config::{
    EntryState, FileState, ProjectEntry, Sources, Trust as State, TrustedEntries,
};
use convoke_core::ExitCode;
use serde::Serialize;

use self::shown::Shown;
use crate::commands::ask;
use crate::failure::{self, Failure};
use crate::output::{Output, spelled};
use crate::session::{Look, Session};
use crate::trust::{TrustFile, folder_of};

const AFTER_TRUST: &str = "\
An entry is whatever starts a program or widens rights: an MCP server of convoke.yml, .mcp.json or \
tools.mcpFiles, a hook, a command tool, the tools of an agent. Each is shown first, whole: command lines, \
variables, headers and addresses, each on a line of its own, with control characters spelled out. Only what \
is nothing but a key, as apiKey, is masked.

Each entry is trusted as it is now. Once it is changed, by a pull or by a model, it is left out until you \
look at it again; so is a new one, and one whose command line names a file of the project (up to 1 MiB) that \
was changed. What has not changed is not shown again, unless with --all. A file that is not trusted may set \
harmless values only.

Examples:
  convoke config trust
  convoke config trust --all
  convoke config trust --json
  convoke config trust ~/work --yes";

const AFTER_UNTRUST: &str = "\
Examples:
  convoke config untrust
  convoke config untrust ~/work";

const AFTER_TRUSTED: &str = "\
Examples:
  convoke config trusted
  convoke config trusted --json";

/// Show what the files of this project decide that you have not seen, and trust it
#[derive(Debug, Args)]
#[command(after_help = AFTER_TRUST)]
pub(crate) struct Trust {
    /// The folder; without it, the one with the project's file
    directory: Option<PathBuf>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Show entries that are trusted already, too
    #[arg(long)]
    all: bool,
    /// Print all entries as JSON; nothing is trusted without --yes
    #[arg(long)]
    json: bool,
}

/// The entries of a project, as a program reads them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    project: String,
    trusted: bool,
    entries: Vec<ReportedEntry<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportedEntry<'a> {
    label: &'a str,
    digest: String,
    state: EntryState,
    #[serde(skip_serializing_if = "<[PathBuf]>::is_empty")]
    files: &'a [PathBuf],
}

/// Stop trusting this project, or a folder
#[derive(Debug, Args)]
#[command(after_help = AFTER_UNTRUST)]
pub(crate) struct Untrust {
    /// The folder; without it, the one with the project's file
    directory: Option<PathBuf>,
}

/// List the projects that are trusted
#[derive(Debug, Args)]
#[command(after_help = AFTER_TRUSTED)]
pub(crate) struct Trusted {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Trust {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let list = TrustFile::read(session.environment())?;
        let folder = project(self.directory.as_deref(), session)?;
        let shown = spelled(&folder.display().to_string());
        let before = list.store().trust(&folder);
        let is_listed = matches!(before, State::Entries(_));
        let session = session.moved_to(&folder);
        let trusted = match before {
            State::Entries(entries) => TrustedEntries::clone(&entries),
            _ => TrustedEntries::default(),
        };
        let trusted = Arc::new(trusted.admitting_all());
        let sources = sources_in(&session, Arc::clone(&trusted))?;
        let Look { loaded, entries, servers } = session.look_at(&sources, trusted)?;
        if loaded.files().iter().any(|file| file.state == FileState::LeftOut) {
            failure::warn(output, loaded.warnings());
        }
        for warning in &servers {
            failure::warning(output, warning);
        }
        let has_file = sources.project_file().is_some();
        if !is_listed && !has_file && entries.is_empty() && !has_agents(&folder) {
            return Err(nothing_in(&folder));
        }
        let unseen = entries.iter().filter(|entry| entry.state != EntryState::Trusted).count();
        if self.json {
            output.json(&report(&shown, is_listed, &entries));
            if !self.yes {
                return Ok(ExitCode::Done);
            }
        } else if !(self.yes && output.is_quiet()) {
            Shown { entries: &entries, all: self.all, is_listed }.tell(output);
        }
        if is_listed && unseen == 0 {
            keep(&folder, &entries, &session)?;
            say(output, &format!("{shown} is trusted already"));
            return Ok(ExitCode::Done);
        }
        if !self.yes && !agrees(&format!("Trust {shown} as it is now?"), output)? {
            say(output, &format!("{shown} is not trusted as it is now"));
            return Ok(ExitCode::Failed);
        }
        keep(&folder, &entries, &session)?;
        say(output, &format!("trusted {shown} as it is now"));
        Ok(ExitCode::Done)
    }
}

/// Returns where configuration comes from for a user who looks at a project: all of its entries count.
fn sources_in(session: &Session<'_>, trusted: Arc<TrustedEntries>) -> Result<Sources, Failure> {
    let mut sources = session.sources()?;
    // One further up is another project's.
    let is_here = |file: &PathBuf| file.parent() == Some(session.working_directory());
    if !sources.project_file().is_some_and(|file| is_here(&file)) {
        sources.project_directory = None;
    }
    sources.trust = State::Entries(trusted);
    Ok(sources)
}

/// Writes down that these entries are trusted, and no others of the project.
fn keep(folder: &Path, entries: &[ProjectEntry], session: &Session<'_>) -> Result<(), Failure> {
    TrustFile::change(session.environment(), |store| {
        let set = store.set(folder, entries);
        set.map_err(|error| Failure::usage("the project cannot be listed").because(&error))
    })?;
    Ok(())
}

fn report<'a>(project: &str, trusted: bool, entries: &'a [ProjectEntry]) -> Report<'a> {
    let entries = entries.iter().map(|entry| ReportedEntry {
        label: &entry.label,
        digest: entry.digest.to_string(),
        state: entry.state,
        files: &entry.files,
    });
    Report { project: project.to_owned(), trusted, entries: entries.collect() }
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
            None => project(None, session)?,
        };
        let removed = TrustFile::change(session.environment(), |store| Ok(store.remove(&meant)))?;
        let was = if removed { "no longer" } else { "not" };
        say(output, &format!("{} is {was} trusted", meant.display()));
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
            file.store().projects().map(|path| path.display().to_string()).collect();
        if self.json {
            output.json(&shown);
        } else {
            for path in &shown {
                output.out.line(output.out.printable(path));
            }
            if shown.is_empty() {
                say(output, &format!("no project is trusted ({})", file.path().display()));
            }
        }
        Ok(ExitCode::Done)
    }
}

/// Returns the project that is meant, as it is listed: the folder that was named, or the one that holds here.
fn project(named: Option<&Path>, session: &Session<'_>) -> Result<PathBuf, Failure> {
    let named = named.map(|folder| session.absolute(folder));
    let found = match &named {
        Some(folder) => folder.canonicalize().ok().filter(|folder| folder.is_dir()),
        None => folder_of(&session.sources()?),
    };
    let folder = named.unwrap_or_else(|| session.working_directory().to_owned());
    found.ok_or_else(|| {
        Failure::usage(format!("`{}` is no project that can be trusted", folder.display()))
            .hint("it is your home directory, or is not there")
    })
}

fn say(output: &Output, text: &str) {
    if !output.is_quiet() {
        output.err.line(output.err.printable(text));
    }
}
