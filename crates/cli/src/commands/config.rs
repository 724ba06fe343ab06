//! `convoke config`: what holds, why, and whether it is right.

mod check;
mod explain;
mod schema;
mod show;
mod trust;

use clap::Subcommand;
use convoke_core::ExitCode;
use serde_json::Value;

use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// What can be done with configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    Show(show::Show),
    Explain(explain::Explain),
    Check(check::Check),
    Schema(schema::Schema),
    Trust(trust::Trust),
    Untrust(trust::Untrust),
    Trusted(trust::Trusted),
}

impl Config {
    /// Runs the command.
    pub(super) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        match self {
            Self::Show(command) => command.run(session, output),
            Self::Explain(command) => command.run(session, output),
            Self::Check(command) => command.run(session, output),
            Self::Schema(command) => command.run(session, output),
            Self::Trust(command) => command.run(session, output),
            Self::Untrust(command) => command.run(session, output),
            Self::Trusted(command) => command.run(session, output),
        }
    }
}

/// Writes a value as people write it in a file, on one line.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && !text.contains(char::is_control) => text.clone(),
        other => other.to_string(),
    }
}
