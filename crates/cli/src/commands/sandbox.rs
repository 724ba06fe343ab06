//! `convoke sandbox`: how programs are confined, tried out.

mod carry_out;
mod changes;
mod run;

use clap::Subcommand;

use crate::ended::Ended;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// What to do with the sandbox.
#[derive(Debug, Subcommand)]
pub(crate) enum Sandbox {
    Run(run::Run),
}

impl Sandbox {
    /// Runs the command.
    pub(crate) fn run(self, session: &Session<'_>, output: &mut Output) -> Result<Ended, Failure> {
        match self {
            Self::Run(command) => command.run(session, output),
        }
    }
}
