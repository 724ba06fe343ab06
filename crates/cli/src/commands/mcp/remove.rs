//! `convoke mcp remove`: a server less.

use clap::Args;
use convoke_core::ExitCode;

use super::place::{PlaceFlag, known, open};
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Only what stands in tools.mcpServers of that file is taken out. A server of .mcp.json or of tools.mcpFiles is \
taken out there, by hand. `convoke mcp disable` switches one off and keeps it.

Examples:
  convoke mcp remove files
  convoke mcp remove db --project";

/// Take a server out of your file, or the project's
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Remove {
    /// The server
    name: String,
    #[command(flatten)]
    place: PlaceFlag,
}

impl Remove {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        known(session, output);
        let path = self.place.file(session)?;
        let shown = path.display();
        let mut edit = open(&path, session)?;
        if !edit.has(&self.name)? {
            let message = format!("there is no MCP server `{}` in {shown}", self.name);
            return Err(Failure::usage(message)
                .hint("`convoke mcp list --json` says which file each is in"));
        }
        edit.remove(&self.name)?;
        edit.write()?;
        if !output.is_quiet() {
            let line = format!("removed {} from {shown}", self.name);
            output.err.line(output.err.printable(&line));
        }
        self.place.warn(output);
        Ok(ExitCode::Done)
    }
}
