//! `convoke policy`: what is allowed, and which rule says so.

mod check;
mod show;
mod test;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use convoke_core::{ExitCode, Mode, Permission};

use crate::failure::Failure;
use crate::output::{Output, Style};
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
    let words = PossibleValuesParser::new(Mode::ALL.iter().map(|mode| mode.as_str()));
    words.try_map(|word| word.parse::<Mode>())
}

const fn style_of(permission: Permission) -> Style {
    match permission {
        Permission::Allow => Style::Good,
        Permission::Ask => Style::Warn,
        Permission::Deny => Style::Bad,
    }
}
