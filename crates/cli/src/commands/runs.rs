//! `convoke runs`: what happened in runs, and how they go on.

mod fork;
mod goes_on;
mod named;
mod replay;
mod resume;

use clap::Subcommand;
use convoke_core::ExitCode;

use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// See, resume, fork and export runs.
#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    Resume(Box<resume::Resume>),
    Fork(Box<fork::Fork>),
    Replay(replay::Replay),
}

impl Runs {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        match self {
            Self::Resume(command) => command.run(session, output),
            Self::Fork(command) => command.run(session, output),
            Self::Replay(command) => command.run(session, output),
        }
    }
}
