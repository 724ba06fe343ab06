//! Where a run that begins works: made before it, left after it.

use std::time::Duration;

use convoke::Workspace;
use convoke::config::Config;
use convoke::journal::Store;
use convoke_core::{ExitCode, RunId};

use super::super::workspace;
use super::flags::{AgentFlags, WorkspaceFlag};
use super::watch;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// Where a run works, and where it is kept.
pub(in crate::commands) struct Place {
    pub(in crate::commands) config: Config,
    pub(in crate::commands) store: Option<Store>,
    pub(in crate::commands) workspace: Option<Workspace>,
    pub(in crate::commands) id: RunId,
}

/// Makes a place for a run, lets it work there, and leaves it.
pub(in crate::commands) fn work_in_place(
    flags: &AgentFlags,
    workspace: &WorkspaceFlag,
    session: &Session<'_>,
    output: &mut Output,
    work: impl FnOnce(Place, &tokio::runtime::Runtime, &mut Output) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    let mut config = session.load(output)?.config;
    flags.apply(&mut config);
    let threads = watch::threads()?;
    let store = if flags.no_journal { None } else { session.store(output) };
    let kind = workspace.workspace.unwrap_or(config.agent.workspace);
    let (id, own) = workspace::prepare(kind, store.is_some(), session, &config, &threads)?;
    let place = Place { config, store, workspace: own.clone(), id };
    let ended = work(place, &threads, output);
    workspace::leave(own.as_ref(), &threads, output);
    // What does not end by itself, reading from a terminal for instance, ends with the process.
    threads.shutdown_timeout(Duration::from_millis(200));
    ended
}
