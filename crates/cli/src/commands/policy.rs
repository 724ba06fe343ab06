//! `convoke policy`: what is allowed, and which rule says so.

mod check;
mod show;
mod test;

use clap::Subcommand;
use clap::builder::TypedValueParser;
use convoke_core::{ExitCode, Mode};

use crate::cli::one_of;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// What can be done with policy.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    Check(check::Check),
    Test(test::Test),
    Show(show::Show),
}

impl Policy {
    /// Runs the command.
    pub(super) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        match self {
            Self::Check(command) => command.run(session, output),
            Self::Test(command) => command.run(session, output),
            Self::Show(command) => command.run(session, output),
        }
    }
}

/// Reads a mode on the command line.
fn mode_parser() -> impl TypedValueParser<Value = Mode> {
    one_of(Mode::ALL.iter().map(|mode| mode.as_str()))
}
