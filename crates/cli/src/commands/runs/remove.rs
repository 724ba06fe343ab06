//! `convoke runs rm`: runs that are no longer wanted.

use clap::Args;
use convoke::journal::{Store, Summary};
use convoke::{WorkspaceError, Workspaces};
use convoke_core::{Cause, ExitCode, RunId};

use super::super::ask;
use super::super::run::watch;
use super::super::workspace;
use super::named::{self, LastFlag};
use super::state::State;
use crate::bytes;
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::session::Session;
use crate::view::amounts;
use crate::view::brief::one_line;

const AFTER_HELP: &str = "\
A run's own workspace goes with it, and changes in it that were not applied; that is said first. \
A run that a process works on is not removed. A workspace that belongs to no run, because none was kept, is \
removed by its own id, or that of the run. Where one of several is not found or cannot be removed, none is. \
On a terminal you are asked first; where nobody can be asked, --yes is needed.

Examples:
  convoke runs rm 1k2m
  convoke runs rm 1k2m 9xyz --yes";

/// Remove runs
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Remove {
    /// The runs, or any parts of their ids that no other run has
    #[arg(value_name = "ID", required_unless_present = "last")]
    words: Vec<String>,
    #[command(flatten)]
    last: LastFlag,
    /// Do not ask
    #[arg(long, short, visible_alias = "force")]
    yes: bool,
}

impl Remove {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let store = session.existing_store()?;
        let Meant { runs, left } = self.meant(&store, session, output)?;
        let all = store.list().map_err(|error| named::failure(&error))?;
        let about = |run: &RunId| all.iter().find(|summary| summary.run == *run);
        let is_running = |run: &&RunId| about(run).is_some_and(|run| State::of(run).is_worked_on());
        if let Some(run) = runs.iter().find(is_running) {
            let message = format!("run `{run}` is being worked on, so nothing is removed");
            return Err(
                Failure::new(Cause::State, message).hint("wait until that ends, or stop it")
            );
        }
        let threads = watch::threads()?;
        let own = Own::find(&store, &runs, session, &threads, output)?;
        let left = left.into_iter().map(|(run, workspaces)| {
            let root = run.clone();
            Own::of(&root, run, workspaces, &threads)
        });
        let left = left.collect::<Result<Vec<_>, _>>()?;
        for run in own.iter().chain(&left).filter(|own| own.holds_changes).map(|own| &own.run) {
            let said = "it changed files in its workspace that were not applied: they go with it";
            failure::doubt(output, &format!("{run}: {said}"));
        }
        if !self.yes {
            for run in &runs {
                output.err.line(described(run, about(run)));
            }
            for left in &left {
                output.err.line(format_args!("{}  a workspace without a run", left.run));
            }
            let question = match (runs.len(), left.len()) {
                (1, 0) | (0, 1) => "Remove it?".to_owned(),
                (several, 0) => format!("Remove these {several} runs?"),
                (0, several) => format!("Remove these {several} workspaces?"),
                _ => "Remove all of these?".to_owned(),
            };
            match ask::yes(&question, output) {
                Some(true) => {}
                Some(false) => {
                    output.err.line("nothing was removed");
                    return Ok(ExitCode::Done);
                }
                None => {
                    return Err(Failure::usage("nobody can be asked, so nothing is removed")
                        .hint("--yes removes without a question"));
                }
            }
        }
        let mut freed = 0;
        for run in &runs {
            // First what is found through the run, then the run.
            for own in own.iter().filter(|own| own.root == *run) {
                let removed = threads.block_on(own.workspaces.remove(&own.run));
                removed.map_err(|error| workspace::failure(&error))?;
            }
            store.remove(run).map_err(|error| named::failure(&error))?;
            let size = about(run).map_or(0, |run| run.bytes);
            freed += size;
            output.out.line(format_args!("removed {run}, {}", bytes::show(size)));
        }
        for left in &left {
            let removed = threads.block_on(left.workspaces.remove(&left.run));
            removed.map_err(|error| workspace::failure(&error))?;
            output.out.line(format_args!("removed the workspace of {}", left.run));
        }
        if runs.len() > 1 && !output.is_quiet() {
            let count = amounts::count(runs.len() as u64, "run");
            output.err.line(format_args!("{count}, {} freed", bytes::show(freed)));
        }
        Ok(ExitCode::Done)
    }

    /// Finds all of them before anything is done, each once.
    fn meant(
        &self,
        store: &Store,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<Meant, Failure> {
        let mut meant = Meant::default();
        if self.last.last {
            meant.runs.push(named::only(store, &[], self.last, session)?);
            return Ok(meant);
        }
        for word in &self.words {
            match named::find(store, word) {
                Ok(run) if meant.runs.contains(&run) => {}
                Ok(run) => meant.runs.push(run),
                Err(unknown) => {
                    let Ok(loaded) = session.load(output) else { return Err(unknown) };
                    let found = workspace::without_run(word, store, session, &loaded.config)?;
                    if found.is_empty() {
                        return Err(unknown);
                    }
                    let known: Vec<RunId> = meant.left.iter().map(|(run, _)| run.clone()).collect();
                    meant.left.extend(found.into_iter().filter(|(run, _)| !known.contains(run)));
                }
            }
        }
        Ok(meant)
    }
}

/// What is to go.
#[derive(Default)]
struct Meant {
    runs: Vec<RunId>,
    /// Workspaces that belong to no run that is kept.
    left: Vec<(RunId, Workspaces)>,
}

/// A workspace that goes with its run: its own, or that of an agent it called.
struct Own {
    /// The run that goes.
    root: RunId,
    run: RunId,
    workspaces: Workspaces,
    /// Whether there is something in it that is nowhere else. Where nobody can say, there may be.
    holds_changes: bool,
}

impl Own {
    fn find(
        store: &Store,
        runs: &[RunId],
        session: &Session<'_>,
        threads: &tokio::runtime::Runtime,
        output: &mut Output,
    ) -> Result<Vec<Self>, Failure> {
        let mut found = Vec::new();
        let mut config = None;
        for run in runs {
            let Ok(recorded) = store.read(run) else { continue };
            if !workspace::any_is_own(&recorded.events) {
                continue;
            }
            let config = match &config {
                Some(config) => config,
                None => config.insert(session.load(output)?.config),
            };
            let own = workspace::kept_by(&recorded.events, session, config);
            let own = own.map(|workspaces| (run.clone(), workspaces));
            let mut below = workspace::of_its_agents(&recorded.events, session, config);
            below.retain(|(one, _)| own.as_ref().is_none_or(|(own, _)| own != one));
            for (one, workspaces) in own.into_iter().chain(below) {
                found.push(Self::of(run, one, workspaces, threads)?);
            }
        }
        Ok(found)
    }

    /// Looks at one. Nobody's is removed who works with it.
    fn of(
        root: &RunId,
        run: RunId,
        workspaces: Workspaces,
        threads: &tokio::runtime::Runtime,
    ) -> Result<Self, Failure> {
        let holds_changes = threads.block_on(workspaces.holds_changes(&run));
        if let Err(error @ WorkspaceError::InUse { .. }) = &holds_changes {
            return Err(workspace::failure(error));
        }
        let holds_changes = holds_changes.unwrap_or(true);
        Ok(Self { root: root.clone(), run, workspaces, holds_changes })
    }
}

fn described(run: &RunId, summary: Option<&Summary>) -> String {
    let asked = summary.map(|summary| one_line(&summary.prompt, 60)).unwrap_or_default();
    let word = summary.map_or("", |summary| State::of(summary).word());
    format!("{run}  {word}  {asked}").trim_end().to_owned()
}
