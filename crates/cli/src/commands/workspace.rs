//! Workspaces of runs: made before a run begins, found again when it goes on, left when it ends.

use std::collections::BTreeSet;
use std::path::Path;

use convoke::agent::new_run_id;
use convoke::config::Config;
use convoke::journal::Store;
use convoke::tools::{Clock, SystemClock};
use convoke::{Origin, Workspace, WorkspaceError, Workspaces};
use convoke_core::{Cause, Event, EventBody, RunId, WorkspaceKind, causes};

use crate::failure::{self, Failure};
use crate::output::Output;
use crate::session::Session;

/// Makes up the id of a run that begins, and makes its workspace.
pub(super) fn prepare(
    kind: WorkspaceKind,
    is_kept: bool,
    session: &Session<'_>,
    config: &Config,
    threads: &tokio::runtime::Runtime,
) -> Result<(RunId, Option<Workspace>), Failure> {
    let run = new_run_id(SystemClock.now());
    if kind == WorkspaceKind::Shared {
        return Ok((run, None));
    }
    if kind.is_own() && !is_kept {
        return Err(Failure::usage(
            "what a run that is not kept leaves in a workspace is not found again",
        )
        .hint("leave out --no-journal, or use `--workspace shared` or `readonly`"));
    }
    let workspaces = place(session, config)?;
    let made = threads.block_on(workspaces.prepare(kind, &run, session.working_directory()));
    Ok((run, Some(made.map_err(|error| failure(&error))?)))
}

/// Finds the workspace of a run that goes on.
pub(super) fn reopen(
    run: &RunId,
    events: &[Event],
    session: &Session<'_>,
    config: &Config,
    threads: &tokio::runtime::Runtime,
    output: &mut Output,
) -> Result<Option<Workspace>, Failure> {
    let Some(origin) = Origin::of(events) else { return Ok(None) };
    let Some(known) = &origin.workspace else { return Ok(None) };
    let (here, mode) = (session.working_directory(), origin.mode);
    if origin.compare(here, mode).directory.is_some() {
        return Err(Failure::usage(format!(
            "run `{run}` works in its own workspace ({}), so it stays where it is",
            known.kind
        ))
        .hint("leave out --here"));
    }
    let start = &origin.working_directory;
    if !known.kind.is_own() {
        let workspaces = place(session, config)?;
        let made = threads.block_on(workspaces.prepare(known.kind, run, start));
        return made.map(Some).map_err(|error| failure(&error));
    }
    let workspaces = kept_at(&known.path, session, config);
    match workspaces.open(run) {
        Ok(workspace) => Ok(Some(workspace)),
        // One in which nothing was changed is removed at the end of a run; then it begins anew.
        Err(WorkspaceError::Gone { .. }) if left_unchanged(run, events) => {
            let made = threads.block_on(workspaces.prepare(known.kind, run, start));
            let made = made.map_err(|error| failure(&error))?;
            let kind = known.kind;
            let said = format!(
                "nothing was changed in its {kind}, so it gets a new one, of the files as they are now"
            );
            failure::doubt(output, &said);
            Ok(Some(made))
        }
        Err(error) => Err(failure(&error)),
    }
}

/// Leaves a workspace: one in which nothing was changed is removed, unless another needs it.
pub(super) fn leave(
    workspace: Option<&Workspace>,
    threads: &tokio::runtime::Runtime,
    output: &mut Output,
) {
    let Some(workspace) = workspace else { return };
    workspace.tidy();
    let left = threads.block_on(async {
        let is_needed = workspace.is_needed().await?;
        let stays = is_needed || !workspace.diff().await?.files.is_empty();
        if stays { Ok(()) } else { workspace.discard().await }
    });
    if let Err(error) = left {
        failure::doubt(output, &format!("the workspace stays: {}", said(&error)));
    }
}

/// Opens the workspace a run was given, if it has files of its own.
pub(super) fn of_run(
    run: &RunId,
    events: &[Event],
    session: &Session<'_>,
    config: &Config,
) -> Result<Workspace, Failure> {
    let own = kept_by(events, session, config).or_else(|| of_agents(run, session, config));
    let workspaces = own.ok_or_else(|| {
        let message = format!("run `{run}` worked with your own files, and has no workspace");
        let below = events.iter().filter(|event| {
            event.run != *run && matches!(event.body, EventBody::WorkspaceChanged(_))
        });
        let below: BTreeSet<&RunId> = below.map(|event| &event.run).collect();
        let failure = below.iter().fold(Failure::usage(message), |failure, agent| {
            failure.hint(format!("an agent it called has one: `{agent}`"))
        });
        failure.hint("`convoke runs show --full` has the changes it made")
    })?;
    workspaces.open(run).map_err(|error| failure(&error))
}

/// Returns where agents have their workspaces, if this one has one.
fn of_agents(run: &RunId, session: &Session<'_>, config: &Config) -> Option<Workspaces> {
    session.workspaces(config).filter(|workspaces| workspaces.has(run))
}

/// Returns the run in whose workspace a directory lies, if it lies in one.
pub(super) fn run_of(directory: &Path, session: &Session<'_>, config: &Config) -> Option<RunId> {
    let workspaces = session.workspaces(config)?;
    let root = workspaces.directory().canonicalize().ok()?;
    let below = directory.strip_prefix(&root).ok()?;
    Some(RunId::new(below.iter().next()?.to_str()?))
}

/// Opens the workspace of an agent that a run called, if these words are its id or a part of it.
pub(super) fn open_below(
    words: &[String],
    session: &Session<'_>,
    config: &Config,
) -> Result<Option<(RunId, Workspace)>, Failure> {
    let ([id], Some(workspaces)) = (words, session.workspaces(config)) else { return Ok(None) };
    let listed = workspaces.list().map_err(|error| failure(&error))?;
    let Some(run) = meant(id, &listed) else { return Ok(None) };
    let opened = workspaces.open(run).map_err(|error| failure(&error))?;
    Ok(Some((run.clone(), opened)))
}

/// Returns the one that is meant by an id or a part of it, if only one can be. The id of an agent is the beginning of
/// those of the agents it called, and the second call of an answer has the beginning of the eleventh's name; so an
/// equal id counts first, then what ends with it, then what has it as whole parts.
fn meant<'r>(word: &str, listed: &'r [RunId]) -> Option<&'r RunId> {
    let whole = format!("-{word}-");
    let ways: [&dyn Fn(&str) -> bool; 4] = [
        &|id| id == word,
        &|id| id.strip_suffix(word).is_some_and(|before| before.ends_with('-')),
        &|id| format!("-{id}-").contains(&whole),
        &|id| id.contains(word),
    ];
    for fits in ways {
        let mut found = listed.iter().filter(|run| !word.is_empty() && fits(run.as_str()));
        match (found.next(), found.next()) {
            (Some(run), None) => return Some(run),
            (Some(_), Some(_)) => return None,
            (None, _) => {}
        }
    }
    None
}

/// Returns the workspaces that belong to no run that is kept, of which this is the id, or the id of the run that
/// called their agents: such a run kept no journal, or somebody removed it.
pub(super) fn without_run(
    id: &str,
    store: &Store,
    session: &Session<'_>,
    config: &Config,
) -> Result<Vec<(RunId, Workspaces)>, Failure> {
    let Some(workspaces) = session.workspaces(config) else { return Ok(Vec::new()) };
    let listed = workspaces.list().map_err(|error| failure(&error))?;
    let below = format!("{id}-");
    let is_meant = |run: &RunId| run.as_str() == id || run.as_str().starts_with(&below);
    let meant = listed.into_iter().filter(|run| is_meant(run) && !is_kept(store, run));
    Ok(meant.map(|run| (run, workspaces.clone())).collect())
}

/// Tells whether a run is kept, or the one that called this agent.
pub(super) fn is_kept(store: &Store, run: &RunId) -> bool {
    let root = run.as_str().split('-').next().unwrap_or_default();
    let is_there = |run: &RunId| store.directory(run).is_ok_and(|path| path.exists());
    is_there(run) || is_there(&RunId::new(root))
}

/// Returns the workspaces that agents had in a run, with where they are kept.
pub(super) fn of_its_agents(
    events: &[Event],
    session: &Session<'_>,
    config: &Config,
) -> Vec<(RunId, Workspaces)> {
    let mut found: Vec<(RunId, Workspaces)> = Vec::new();
    for event in events {
        let EventBody::WorkspacePrepared { place, .. } = &event.body else { continue };
        let workspaces = kept_at(Path::new(&place.path), session, config);
        let is_known = found.iter().any(|(known, _)| *known == event.run);
        if place.kind.is_own() && !is_known && workspaces.has(&event.run) {
            found.push((event.run.clone(), workspaces));
        }
    }
    found
}

/// Tells whether a run, or an agent it called, has files of its own.
pub(super) fn any_is_own(events: &[Event]) -> bool {
    let own = |event: &Event| match &event.body {
        EventBody::WorkspacePrepared { place, .. } => place.kind.is_own(),
        _ => false,
    };
    let known = Origin::of(events).and_then(|origin| origin.workspace);
    known.is_some_and(|known| known.kind.is_own()) || events.iter().any(own)
}

/// Returns where the workspace of a run with files of its own is kept.
pub(super) fn kept_by(
    events: &[Event],
    session: &Session<'_>,
    config: &Config,
) -> Option<Workspaces> {
    let known = Origin::of(events)?.workspace.filter(|known| known.kind.is_own())?;
    Some(kept_at(&known.path, session, config))
}

/// Says no to what needs a second workspace like the first.
pub(super) fn refuse_copies(events: &[Event]) -> Result<(), Failure> {
    let known = Origin::of(events).and_then(|origin| origin.workspace);
    match known.filter(|known| known.kind.is_own()) {
        None => Ok(()),
        Some(known) => Err(Failure::usage(format!(
            "the run works in a {} of its own, which cannot be forked: two runs would change the same files",
            known.kind
        ))
        .hint("`convoke runs apply` takes its changes over; then start a new run")),
    }
}

/// Says no to a run that would leave its workspace.
pub(super) fn refuse_move(events: &[Event]) -> Result<(), Failure> {
    let known = Origin::of(events).and_then(|origin| origin.workspace);
    match known {
        None => Ok(()),
        Some(known) => {
            let message = format!("that run works in its own workspace ({})", known.kind);
            Err(Failure::usage(message).hint("`convoke chat --resume ID` goes on there"))
        }
    }
}

/// Says what is wrong with a workspace.
pub(super) fn failure(error: &WorkspaceError) -> Failure {
    let cause = match error {
        WorkspaceError::NoRepository { .. }
        | WorkspaceError::TooMuch { .. }
        | WorkspaceError::Inside { .. } => Cause::Usage,
        WorkspaceError::NotConfined(_) => Cause::Denied,
        WorkspaceError::Conflict { .. } | WorkspaceError::AlreadyApplied { .. } => Cause::Error,
        _ => Cause::State,
    };
    let failure = Failure::new(cause, error.to_string());
    let files = match error {
        WorkspaceError::Conflict { files, .. } => files.clone(),
        _ => Vec::new(),
    };
    let failure = match std::error::Error::source(error) {
        Some(source) => failure.because(source),
        None => failure,
    };
    failure.causes(files).any_hint(error.hint().map(str::to_owned))
}

/// Returns an error and what led to it in a line.
pub(super) fn said(error: &WorkspaceError) -> String {
    causes::chain(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn place(session: &Session<'_>, config: &Config) -> Result<Workspaces, Failure> {
    session.workspaces(config).ok_or_else(|| {
        Failure::new(Cause::State, "there is no home directory, so no place for workspaces")
            .hint("XDG_DATA_HOME names one")
    })
}

fn kept_at(root: &Path, session: &Session<'_>, config: &Config) -> Workspaces {
    session.workspaces_at(root.parent().unwrap_or(root), config)
}

/// Tells whether a run, or an agent, had files of its own that are gone because nothing was changed in them.
pub(super) fn is_gone_unchanged(
    run: &RunId,
    events: &[Event],
    session: &Session<'_>,
    config: &Config,
) -> bool {
    let place = events.iter().rev().find_map(|event| match &event.body {
        EventBody::WorkspacePrepared { place, .. } if event.run == *run => Some(place),
        _ => None,
    });
    let is_gone = place
        .filter(|place| place.kind.is_own())
        .is_some_and(|place| !kept_at(Path::new(&place.path), session, config).has(run));
    is_gone && left_unchanged(run, events)
}

fn left_unchanged(run: &RunId, events: &[Event]) -> bool {
    let last = events.iter().rev().find_map(|event| match &event.body {
        EventBody::WorkspaceChanged(report) if event.run == *run => Some(report.files.is_empty()),
        _ => None,
    });
    last.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_id_wins_over_one_that_has_it_as_its_beginning() {
        let ids =
            ["r1-call_7_0", "r1-call_7_0-call_9_0", "r1-call_7_1", "r1-call_7_10", "r2-call_3"];
        let listed = ids.map(RunId::new);
        let meant = |word: &str| meant(word, &listed).map(RunId::as_str);
        for id in ids {
            assert_eq!(meant(id), Some(id));
        }
        assert_eq!(meant("call_7_0"), Some("r1-call_7_0"));
        assert_eq!(meant("call_7_1"), Some("r1-call_7_1"));
        assert_eq!(meant("r2"), Some("r2-call_3"));
        assert_eq!(meant("_3"), Some("r2-call_3"));
        for unclear in ["", "r1", "call", "r3"] {
            assert_eq!(meant(unclear), None, "{unclear}");
        }
    }
}
