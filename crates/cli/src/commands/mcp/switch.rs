//! `convoke mcp enable` and `disable`: a server is used, or kept for later.

use clap::Args;
use convoke_core::ExitCode;

use super::edit::Switch;
use super::place::{PlaceFlag, known, open};
use super::runtime;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

const AFTER_ENABLE: &str = "\
Examples:
  convoke mcp enable files";

const AFTER_DISABLE: &str = "\
The server stays in the file, and is neither started nor shown to models.

Examples:
  convoke mcp disable files
  convoke mcp disable db --project";

/// Use a server that was switched off
#[derive(Debug, Args)]
#[command(after_help = AFTER_ENABLE)]
pub(crate) struct Enable {
    #[command(flatten)]
    which: Which,
}

/// Do not use a server, and keep it in its file
#[derive(Debug, Args)]
#[command(after_help = AFTER_DISABLE)]
pub(crate) struct Disable {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
struct Which {
    /// The server
    name: String,
    #[command(flatten)]
    place: PlaceFlag,
}

impl Enable {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        self.which.switch(Switch::On, "switched on", session, output)
    }
}

impl Disable {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        self.which.switch(Switch::Off, "switched off", session, output)
    }
}

impl Which {
    fn switch(
        &self,
        on: Switch,
        done: &str,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        known(session, output);
        let path = self.place.file(session)?;
        let mut edit = open(&path, session)?;
        let (name, shown) = (&self.name, path.display());
        if !edit.has(name)? {
            let failure = Failure::usage(format!("there is no MCP server `{name}` in {shown}"));
            return Err(match self.elsewhere(session, output) {
                Some(file) => failure.hint(format!(
                    "it is in {file}: write \"disabled\": true there to switch it off"
                )),
                None => failure.hint("`convoke mcp list --json` says which file each is in"),
            });
        }
        edit.switch(name, on)?;
        edit.write()?;
        if !output.is_quiet() {
            let line = format!("{done} {name} in {shown}");
            output.err.line(output.err.printable(&line));
        }
        self.place.warn(output);
        Ok(ExitCode::Done)
    }

    /// Returns the file of another program that the server is written in.
    fn elsewhere(&self, session: &Session<'_>, output: &mut Output) -> Option<String> {
        let runtime = runtime(session, output).ok()?;
        let listed = runtime.mcp()?.listed().iter().find(|one| one.config.name == self.name)?;
        listed.file.as_ref().map(|file| file.display().to_string())
    }
}
