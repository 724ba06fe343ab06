//! `convoke models`: which models there are, and whether one answers.

mod check;
mod list;

use clap::Subcommand;
use convoke_core::ExitCode;

use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// What to do with models.
#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    List(list::List),
    Check(check::Check),
}

impl Models {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        match self {
            Self::List(command) => command.run(session, output),
            Self::Check(command) => command.run(session, output),
        }
    }
}
