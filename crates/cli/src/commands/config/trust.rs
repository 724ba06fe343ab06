//! `convoke config trust`, `untrust` and `trusted`: whose `convoke.yml` may decide things.

use std::path::{Path, PathBuf};

use clap::Args;
use convoke_core::ExitCode;

use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::trust::TrustFile;

const AFTER_TRUST: &str = "\
A folder that is not trusted may set harmless values only: nothing that runs a program, names a \
server or reads a variable. Trusting a folder trusts everything below it.

Examples:
  convoke config trust
  convoke config trust ~/work";

const AFTER_UNTRUST: &str = "\
Examples:
  convoke config untrust
  convoke config untrust ~/work";

const AFTER_TRUSTED: &str = "\
Examples:
  convoke config trusted
  convoke config trusted --json";

/// Trust the convoke.yml of this project, or of a folder
#[derive(Debug, Args)]
#[command(after_help = AFTER_TRUST)]
pub(crate) struct Trust {
    /// The folder; without it, the one with the project's file
    directory: Option<PathBuf>,
}

/// Stop trusting this project, or a folder
#[derive(Debug, Args)]
#[command(after_help = AFTER_UNTRUST)]
pub(crate) struct Untrust {
    /// The folder; without it, the one with the project's file
    directory: Option<PathBuf>,
}

/// List the folders that are trusted
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
        let directory = existing(self.directory.as_deref(), session)?;
        let mut file = TrustFile::read(session.environment())?;
        let added = file
            .store_mut()
            .add(&directory)
            .map_err(|error| Failure::usage("the folder cannot be listed").because(&error))?;
        let shown = directory.display();
        if added {
            file.write()?;
            say(output, &format!("trusted {shown}"));
        } else {
            say(output, &format!("{shown} is trusted already"));
        }
        Ok(ExitCode::Done)
    }
}

impl Untrust {
    /// Runs the command. A folder that is gone can still be taken off the list.
    pub(super) fn run(&self, session: &Session<'_>, output: &Output) -> Result<ExitCode, Failure> {
        let directory = existing(self.directory.as_deref(), session).or_else(|failure| {
            self.directory.as_deref().map(|path| session.absolute(path)).ok_or(failure)
        })?;
        let mut file = TrustFile::read(session.environment())?;
        let shown = directory.display();
        let removed = file.store_mut().remove(&directory);
        if removed {
            file.write()?;
        }
        if let Some(above) = covering(&file, &directory) {
            let message = format!("{shown} is still trusted");
            let hint = format!("`convoke config untrust {}` ends it", above.display());
            return Err(Failure::failed(message)
                .causes([format!("it lies in {}, which is trusted", above.display())])
                .hint(hint));
        }
        let was = if removed { "no longer" } else { "not" };
        say(output, &format!("{shown} is {was} trusted"));
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
            file.store().directories().map(|path| path.display().to_string()).collect();
        if self.json {
            output.json(&shown);
        } else {
            for path in &shown {
                output.out.line(output.out.printable(path));
            }
            if shown.is_empty() {
                say(output, &format!("no folder is trusted ({})", file.path().display()));
            }
        }
        Ok(ExitCode::Done)
    }
}

/// Returns the folder that is meant, links followed: the one that was named, or the one that has the
/// project's file, or this one.
fn existing(named: Option<&Path>, session: &Session<'_>) -> Result<PathBuf, Failure> {
    let directory = match named {
        Some(path) => session.absolute(path),
        None => match session.sources()?.project_file().as_deref().and_then(Path::parent) {
            Some(directory) => directory.to_owned(),
            None => session.working_directory().to_owned(),
        },
    };
    let real = directory.canonicalize().map_err(|error| {
        Failure::usage(format!("`{}` cannot be found", directory.display())).because(&error)
    })?;
    if !real.is_dir() {
        return Err(Failure::usage(format!("`{}` is not a folder", real.display())));
    }
    Ok(real)
}

/// Returns a trusted folder that this one lies in.
fn covering<'a>(file: &'a TrustFile, directory: &Path) -> Option<&'a Path> {
    file.store().directories().find(|above| directory.starts_with(above))
}

fn say(output: &Output, text: &str) {
    if !output.is_quiet() {
        output.err.line(output.err.printable(text));
    }
}
