//! `convoke runs`: what happened in runs, and how they go on.

mod answer;
mod apply;
mod audit;
mod collect;
pub(super) mod consent;
mod diff;
mod export;
mod fork;
mod goes_on;
mod list;
pub(super) mod named;
mod remove;
mod replay;
mod resume;
mod short;
mod show;
mod state;
mod unanswered;

pub(super) use self::export::Format;
pub(super) use self::goes_on::{journals, refuse_never_started, refuse_served};
pub(super) use self::unanswered::is_answered;
use clap::Subcommand;
use convoke_core::ExitCode;

use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// See, resume, fork and export runs.
#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    #[command(visible_alias = "ls")]
    List(list::List),
    Show(show::Show),
    Audit(audit::Audit),
    Resume(Box<resume::Resume>),
    Fork(Box<fork::Fork>),
    Approve(answer::Approve),
    Deny(answer::Deny),
    Replay(replay::Replay),
    Diff(diff::Diff),
    Apply(apply::Apply),
    Export(export::Export),
    #[command(name = "rm", visible_alias = "remove")]
    Remove(remove::Remove),
    #[command(name = "gc")]
    Collect(collect::Collect),
}

impl Runs {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        match self {
            Self::List(command) => command.run(session, output),
            Self::Show(command) => command.run(session, output),
            Self::Audit(command) => command.run(session, output),
            Self::Resume(command) => command.run(session, output),
            Self::Fork(command) => command.run(session, output),
            Self::Approve(command) => command.run(session, output),
            Self::Deny(command) => command.run(session, output),
            Self::Replay(command) => command.run(session, output),
            Self::Diff(command) => command.run(session, output),
            Self::Apply(command) => command.run(session, output),
            Self::Export(command) => command.run(session, output),
            Self::Remove(command) => command.run(session, output),
            Self::Collect(command) => command.run(session, output),
        }
    }
}
