//! `convoke config trust`, `untrust` and `trusted`: whose `convoke.yml` may decide things.

use std::path::{Path, PathBuf};

use clap::Args;
use convoke::PROJECT_SERVERS;
use convoke::agent::files::{list, usual_directories};
use convoke::config::{Grant, Grants, PROJECT_FILE_NAMES, Trust as State, grants};
use convoke::mcp::client::{ServerConfig, Transport, import};
use convoke_core::ExitCode;

use crate::commands::ask;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::session::Session;
use crate::trust::{TrustFile, file_in, file_of, listed_as};
use crate::view::amounts;

/// How much of a value is shown.
const MAX_CHARACTERS: usize = 200;

const AFTER_TRUST: &str = "\
A file that is not trusted may set harmless values only: nothing that runs a program, names a server or \
reads a variable. What is trusted is what the file says now: once it is changed, by a pull request or by a \
model, it is not trusted until you look at it again.

A folder without such a file is trusted with the agents and the .mcp.json in it; a convoke.yml that comes later is not.

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

/// Show what the convoke.yml of this project decides, and trust it as it is
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
        let mut list = TrustFile::read(session.environment())?;
        let file = project_file(self.directory.as_deref(), session)?;
        let grants = grants(&file)?;
        let folder = file.parent().filter(|_| !file.exists());
        let shown = folder.unwrap_or(&file).display();
        if list.store().trust(&file) == State::Pinned(grants.digest) {
            say(output, &format!("{shown} is trusted already"));
            return Ok(ExitCode::Done);
        }
        if let Some(folder) = folder {
            refuse_nothing(folder)?;
        }
        if !(self.yes && output.is_quiet()) {
            tell(&file, &grants, output);
        }
        let question = match folder {
            None => format!("Trust {shown} as it is now?"),
            Some(_) => format!("Trust the agents and MCP servers of {shown}?"),
        };
        if !self.yes && !agrees(&question, output)? {
            say(output, &format!("{shown} is not trusted"));
            return Ok(ExitCode::Failed);
        }
        list.store_mut()
            .add(&file, grants.digest)
            .map_err(|error| Failure::usage("the file cannot be listed").because(&error))?;
        list.write()?;
        say(
            output,
            &match folder {
                None => format!("trusted {shown} as it is now"),
                Some(_) => format!(
                    "trusted the agents and MCP servers of {shown}, also after they are changed"
                ),
            },
        );
        Ok(ExitCode::Done)
    }
}

/// Says what the file decides once it is trusted.
fn tell(file: &Path, grants: &Grants, output: &Output) {
    let shown = file.display();
    let line = |text: &str| output.err.line(output.err.printable(text));
    for agents in usual_directories(file.parent(), None, None) {
        let files = list(&agents).len() as u64;
        if files > 0 {
            let (path, format) = (agents.path.display(), agents.format.as_str());
            let files = amounts::count(files, "file");
            line(&format!(
                "the agents in {path} ({files}, written as for {format}) can then be called, also after they \
                 were changed"
            ));
        }
    }
    for told in server_files(file, grants).iter().flat_map(|path| servers(path)) {
        line(&told);
    }
    if !file.exists() {
        return line("there is no convoke.yml; one that comes later is not trusted with it");
    }
    if grants.granted.is_empty() {
        return line(&format!("{shown} sets harmless values only"));
    }
    line(&format!("{shown} then decides:"));
    for Grant { key, value, .. } in &grants.granted {
        let value = value.to_string();
        let cut: String = value.chars().take(MAX_CHARACTERS).collect();
        let rest = if cut.len() < value.len() { "…" } else { "" };
        line(&format!("  {key}: {cut}{rest}"));
    }
}

/// Returns the files with MCP servers that are read once the project is trusted: the usual one, and those that
/// the project lists.
fn server_files(file: &Path, grants: &Grants) -> Vec<PathBuf> {
    let root = file.parent().unwrap_or(file);
    let listed = grants.granted.iter().filter(|grant| grant.key.starts_with("tools.mcpFiles["));
    let listed = listed.filter_map(|grant| grant.value.as_str()).map(|path| root.join(path));
    std::iter::once(root.join(PROJECT_SERVERS)).chain(listed).collect()
}

/// Says which MCP servers the project has in a file of their own.
fn servers(path: &Path) -> Vec<String> {
    const MAX_SERVERS: usize = 50;
    let shown = path.display();
    let text = match files::read_if_there(path) {
        Ok(Some(text)) => text,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![format!("{shown} cannot be read: {error}")],
    };
    let servers = import(&text).servers;
    let count = amounts::count(servers.len() as u64, "MCP server");
    let head = format!(
        "{shown} ({count}) is used as well, also after it was changed; its programs run confined, and its \
         addresses are asked where sandbox.network lets programs go:"
    );
    let server = |server: &ServerConfig| {
        let how = match &server.transport {
            Transport::Program { command, args, .. } => {
                let words = std::iter::once(command).chain(args).map(String::as_str);
                words.collect::<Vec<_>>().join(" ")
            }
            Transport::Http { url, .. } => url.clone(),
        };
        let cut: String = how.chars().take(MAX_CHARACTERS).collect();
        let rest = if cut.len() < how.len() { "…" } else { "" };
        format!("  {}: {cut}{rest}", server.name)
    };
    let mut lines = vec![head];
    lines.extend(servers.iter().take(MAX_SERVERS).map(server));
    if servers.len() > MAX_SERVERS {
        lines.push(format!("  and {} more", servers.len() - MAX_SERVERS));
    }
    lines
}

/// Says no to a folder in which there is nothing that trust is needed for.
fn refuse_nothing(folder: &Path) -> Result<(), Failure> {
    let has_agents =
        usual_directories(Some(folder), None, None).iter().any(|at| !list(at).is_empty());
    if has_agents || folder.join(PROJECT_SERVERS).exists() {
        return Ok(());
    }
    let message = format!("there is nothing in `{}` that has to be trusted", folder.display());
    Err(Failure::usage(message)
        .hint("that would be a convoke.yml, files of agents, or a .mcp.json"))
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
        let mut file = TrustFile::read(session.environment())?;
        let removed = file.store_mut().remove(&meant);
        if removed {
            file.write()?;
        }
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
