//! `convoke runs gc`: makes room.

use std::time::Duration;

use clap::Args;
use convoke::journal::{Policy, Store, Unfinished};
use convoke::tools::{Clock, SystemClock};
use convoke::{WorkspaceError, Workspaces};
use convoke_core::{Cause, ExitCode, RunId, Timestamp};
use serde::Serialize;

use super::super::run::watch;
use super::super::workspace;
use super::named;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::view::amounts;
use crate::{bytes, duration};

/// What goes where nobody says: runs nobody looked at for a month.
const USUAL_AGE: Duration = Duration::from_hours(30 * 24);

const AFTER_HELP: &str = "\
Without --older-than, --keep and --max-bytes, runs go in which nothing happened for 30 days. A run that a process \
works on never goes; one that can be resumed only with --unfinished; one that changed files in its workspace, or whose \
agents did in theirs, that were not applied only with `convoke runs rm`. Workspaces of a run and its agents go with it, \
and those that belong to no run any more go as well.

Examples:
  convoke runs gc --dry-run
  convoke runs gc --older-than 2w
  convoke runs gc --keep 100
  convoke runs gc --max-bytes 1GB --keep 10";

/// Remove old runs
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Collect {
    /// Those in which nothing happened for this long, as 12h, 30d or 2w
    #[arg(long, value_name = "AGE", value_parser = duration::parse_age)]
    older_than: Option<Duration>,
    /// Never the newest runs, this many; if nothing else is said, all others
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// The oldest, until all runs together take no more than this, as 500MB or 1GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes::parse)]
    max_bytes: Option<u64>,
    /// Also runs that have not ended, unless a process works on them
    #[arg(long)]
    unfinished: bool,
    /// Say what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The workspaces there are.
struct Found {
    workspaces: Option<Workspaces>,
    threads: tokio::runtime::Runtime,
    /// Those of runs that are not kept: somebody was killed while making one, for instance.
    leftovers: Vec<RunId>,
    /// Those of agents which a run called that is kept: they go with that run.
    agents: Vec<RunId>,
}

impl Found {
    fn look(store: &Store, session: &Session<'_>, output: &mut Output) -> Result<Self, Failure> {
        let threads = watch::threads()?;
        let workspaces = session.workspaces(&session.load(output)?.config);
        let listed = workspaces.as_ref().map(Workspaces::list).transpose();
        let listed = listed.map_err(|error| workspace::failure(&error))?.unwrap_or_default();
        let is_kept = |run: &RunId| store.directory(run).is_ok_and(|path| path.exists());
        let others = listed.into_iter().filter(|run| !is_kept(run));
        let (agents, leftovers) = others.partition(|run| workspace::is_kept(store, run));
        Ok(Self { workspaces, threads, leftovers, agents })
    }

    fn is_needed(&self, run: &RunId) -> Result<bool, String> {
        match self.workspaces.as_ref().filter(|workspaces| workspaces.has(run)) {
            None => Ok(false),
            Some(workspaces) => {
                match self.threads.block_on(workspaces.is_needed(run)) {
                    Ok(is_needed) => Ok(is_needed),
                    Err(error @ WorkspaceError::InUse { .. }) => Err(workspace::said(&error)),
                    // Where nobody can say, its repository is gone for instance, it may be.
                    Err(_) => Ok(true),
                }
            }
        }
    }

    /// Tells whether one of the agents that a run called has a workspace that is needed.
    fn is_needed_of_agents(&self, run: &RunId) -> Result<bool, String> {
        for agent in self.agents_of(run) {
            if self.is_needed(agent)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the agents that a run called, or one of them, of which there is a workspace.
    fn agents_of(&self, run: &RunId) -> impl Iterator<Item = &RunId> {
        let below = format!("{run}-");
        self.agents.iter().filter(move |agent| agent.as_str().starts_with(&below))
    }

    /// Removes the workspaces of a run and of the agents it called.
    fn remove_all(&self, run: &RunId) -> Result<(), String> {
        self.agents_of(run).try_for_each(|agent| self.remove(agent))?;
        self.remove(run)
    }

    fn remove(&self, run: &RunId) -> Result<(), String> {
        let Some(workspaces) = &self.workspaces else { return Ok(()) };
        let removed = self.threads.block_on(workspaces.remove(run));
        removed.map_err(|error| workspace::said(&error))
    }
}

/// What went, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    dry_run: bool,
    removed: Vec<Gone>,
    failed: Vec<Stayed>,
    /// Those whose journals somebody else had removed; their heads went now.
    forgotten: Vec<RunId>,
    /// How many bytes those that went had.
    bytes: u64,
    /// How many would have gone if they had ended.
    unfinished: usize,
    /// Those that stay because of changes in their workspaces that were not applied.
    unapplied: Vec<RunId>,
    /// Those of them that are agents which a run called that is kept.
    #[serde(skip)]
    agents: Vec<RunId>,
    /// Workspaces that belonged to no run any more, and went.
    workspaces: Vec<RunId>,
}

#[derive(Debug, Serialize)]
struct Gone {
    run: RunId,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Stayed {
    run: RunId,
    message: String,
}

impl Collect {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let store = session.existing_store()?;
        let found = Found::look(&store, session, output)?;
        let told = self.collect(&store, &found, SystemClock.now())?;
        if self.json {
            output.json(&told);
        } else {
            self.say(&told, output);
        }
        if told.failed.is_empty() {
            return Ok(ExitCode::Done);
        }
        let count = amounts::count(told.failed.len() as u64, "run");
        let causes = told.failed.into_iter().map(|stayed| stayed.message);
        Err(Failure::new(Cause::State, format!("{count} could not be removed")).causes(causes))
    }

    fn policy(&self) -> Policy {
        let says_nothing =
            self.older_than.is_none() && self.keep.is_none() && self.max_bytes.is_none();
        Policy {
            older_than: self.older_than.or(says_nothing.then_some(USUAL_AGE)),
            keep: self.keep,
            max_bytes: self.max_bytes,
            unfinished: if self.unfinished { Unfinished::Remove } else { Unfinished::Keep },
        }
    }

    fn collect(&self, store: &Store, found: &Found, now: Timestamp) -> Result<Told, Failure> {
        let policy = self.policy();
        let chosen = |policy: &Policy| {
            store.collectable(policy, now).map_err(|error| named::failure(&error))
        };
        let with_unfinished = chosen(&Policy { unfinished: Unfinished::Remove, ..policy })?.len();
        let unfinished = with_unfinished.saturating_sub(chosen(&policy)?.len());
        let mut forgotten = Vec::new();
        if !self.dry_run {
            forgotten = store.tidy(now).map_err(|error| named::failure(&error))?;
        }
        let (mut removed, mut failed, mut unapplied) = (Vec::new(), Vec::new(), Vec::new());
        for run in chosen(&policy)? {
            let gone = match found.is_needed(&run.run) {
                Ok(true) => {
                    unapplied.push(run.run);
                    continue;
                }
                Ok(false) => match found.is_needed_of_agents(&run.run) {
                    // It is told of them below.
                    Ok(true) => continue,
                    Ok(false) if self.dry_run => Ok(()),
                    Ok(false) => found.remove_all(&run.run).and_then(|()| {
                        store.remove(&run.run).map_err(|error| named::failure(&error).to_string())
                    }),
                    Err(message) => Err(message),
                },
                Err(message) => Err(message),
            };
            match gone {
                Ok(()) => removed.push(run),
                Err(message) => failed.push(Stayed { run: run.run, message }),
            }
        }
        for agent in &found.agents {
            let is_gone =
                removed.iter().any(|gone| found.agents_of(&gone.run).any(|of| of == agent));
            if !is_gone && found.is_needed(agent) == Ok(true) {
                unapplied.push(agent.clone());
            }
        }
        let mut workspaces = Vec::new();
        for run in &found.leftovers {
            let gone = match found.is_needed(run) {
                Ok(true) => {
                    unapplied.push(run.clone());
                    continue;
                }
                // Somebody works with it: a run that is about to begin.
                Err(_) => continue,
                Ok(false) if self.dry_run => Ok(()),
                Ok(false) => found.remove(run),
            };
            match gone {
                Ok(()) => workspaces.push(run.clone()),
                Err(message) => failed.push(Stayed { run: run.clone(), message }),
            }
        }
        Ok(Told {
            dry_run: self.dry_run,
            bytes: removed.iter().map(|run| run.bytes).sum(),
            removed: removed
                .into_iter()
                .map(|gone| Gone { run: gone.run, bytes: gone.bytes })
                .collect(),
            failed,
            forgotten,
            unfinished,
            unapplied,
            agents: found.agents.clone(),
            workspaces,
        })
    }

    fn say(&self, told: &Told, output: &Output) {
        let (went, freed) =
            if self.dry_run { ("would remove", "would be freed") } else { ("removed", "freed") };
        for run in &told.removed {
            output.out.line(format_args!("{went} {}, {}", run.run, bytes::show(run.bytes)));
        }
        for run in &told.workspaces {
            output
                .out
                .line(format_args!("{went} the workspace of {run}, which is no run any more"));
        }
        if output.is_quiet() {
            return;
        }
        for run in &told.forgotten {
            output.err.line(format_args!("forgot {run}: its journal was gone without `runs rm`"));
        }
        for run in &told.unapplied {
            let (kept, next) = if told.agents.contains(run) {
                let next =
                    format!("`convoke runs apply {run}` takes them over, `runs rm` removes both");
                ("kept with its run", next)
            } else {
                ("kept", format!("`convoke runs rm {run}` removes it"))
            };
            output.err.line(format_args!(
                "{run} {kept}, since its workspace holds, or may hold, changes that were not applied; {next}"
            ));
        }
        let count = amounts::count(told.removed.len() as u64, "run");
        output.err.line(format_args!("{count}, {} {freed}", bytes::show(told.bytes)));
        if told.unfinished > 0 {
            let kept = amounts::count(told.unfinished as u64, "run");
            output
                .err
                .line(format_args!("{kept} kept that did not end; --unfinished removes those too"));
        }
    }
}
