//! `convoke runs gc`: makes room.

use std::time::Duration;

use clap::Args;
use convoke::journal::{Collection, Policy, Store, Unfinished};
use convoke::tools::{Clock, SystemClock};
use convoke_core::{Cause, ExitCode, RunId, Timestamp};
use serde::Serialize;

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
works on never goes; one that can be resumed only with --unfinished.

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
        let told = self.collect(&store, SystemClock.now())?;
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

    fn collect(&self, store: &Store, now: Timestamp) -> Result<Told, Failure> {
        let policy = self.policy();
        let chosen = |policy: &Policy| {
            store.collectable(policy, now).map_err(|error| named::failure(&error))
        };
        let with_unfinished = chosen(&Policy { unfinished: Unfinished::Remove, ..policy })?.len();
        let unfinished = with_unfinished.saturating_sub(chosen(&policy)?.len());
        let Collection { removed, failed, forgotten } = if self.dry_run {
            Collection { removed: chosen(&policy)?, ..Collection::default() }
        } else {
            store.collect(&policy, now).map_err(|error| named::failure(&error))?
        };
        let stayed = |(run, error): (RunId, convoke::journal::JournalError)| Stayed {
            run,
            message: named::failure(&error).to_string(),
        };
        Ok(Told {
            dry_run: self.dry_run,
            bytes: removed.iter().map(|run| run.bytes).sum(),
            removed: removed
                .into_iter()
                .map(|gone| Gone { run: gone.run, bytes: gone.bytes })
                .collect(),
            failed: failed.into_iter().map(stayed).collect(),
            forgotten,
            unfinished,
        })
    }

    fn say(&self, told: &Told, output: &Output) {
        let (went, freed) =
            if self.dry_run { ("would remove", "would be freed") } else { ("removed", "freed") };
        for run in &told.removed {
            output.out.line(format_args!("{went} {}, {}", run.run, bytes::show(run.bytes)));
        }
        for run in &told.forgotten {
            output.err.line(format_args!("forgot {run}: its journal was gone without `runs rm`"));
        }
        if output.is_quiet() {
            return;
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
