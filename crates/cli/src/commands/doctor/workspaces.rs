//! Whether runs can have files of their own here, and what was left behind.

use convoke::WorkspaceError;
use convoke::config::Config;
use convoke_core::RunId;

use super::super::run::watch;
use super::super::workspace;
use super::Check;
use crate::session::Session;
use crate::view::amounts;

const NAME: &str = "workspaces";

/// Whether a worktree can be made here, and whether there are workspaces without a run.
pub(super) fn check(session: &Session<'_>, config: &Config) -> Check {
    let Some(workspaces) = session.workspaces(config) else {
        return Check::warn(NAME, "neither HOME nor XDG_DATA_HOME is set, so none can be made");
    };
    let Ok(threads) = watch::threads() else {
        return Check::warn(NAME, "it cannot be tried");
    };
    let can = match threads.block_on(workspaces.check(session.working_directory())) {
        Ok(()) => "worktrees and copies can be made".to_owned(),
        Err(error @ WorkspaceError::NoRepository { .. }) => {
            format!("copies can be made; {}", workspace::said(&error))
        }
        Err(error) => {
            return Check::warn(NAME, format!("only copies: {}", workspace::said(&error)));
        }
    };
    let store = session.existing_store().ok();
    let is_kept = |run: &RunId| store.as_ref().is_some_and(|store| workspace::is_kept(store, run));
    let listed = workspaces.list().unwrap_or_default();
    match listed.iter().filter(|run| !is_kept(run)).count() {
        0 => Check::ok(NAME, can),
        left => {
            let left = amounts::count(left as u64, "workspace");
            Check::warn(NAME, format!("{can}; {left} of no run any more"))
                .hint("`convoke runs gc` removes what is not needed")
        }
    }
}
