//! `convoke runs list`: which runs there are.
//!
//! A list is a glance: it is made of what the store has gathered, and no journal is read for it.

mod row;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use convoke::journal::{Store, Summary, is_same_directory};
use convoke::tools::{Clock, SystemClock};
use convoke_core::{ExitCode, Timestamp};
use serde::Serialize;

use self::row::Rows;
use super::named;
use super::state::{self, State};
use super::unanswered;
use crate::duration;
use crate::failure::Failure;
use crate::output::{Output, Style};
use crate::session::Session;

/// How many are shown to a person who did not say.
const USUAL: usize = 20;

const AFTER_HELP: &str = "\
The newest come first. Any part of an id that no other run has is enough to name a run; on a terminal with \
colours, a part that is enough stands out. With --json all runs are printed unless --limit says otherwise, and \
times are milliseconds since 1970; `status` is the word that is shown here and in `runs show`.

A run that is `interrupted` was stopped or lost and can be resumed; the report of one that was stopped says \
`cancelled`. One that is `waiting` has asked a person; how many questions are open follows in parentheses, and \
`convoke runs show ID` has them.

Examples:
  convoke runs list
  convoke runs list --status interrupted          those that can be resumed
  convoke runs list --status waiting --status parked
  convoke runs list --here --since 2d --all
  convoke runs list --json --limit 1";

/// List runs
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct List {
    /// How many to show [default: 20]
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "all")]
    limit: Option<usize>,
    /// Show all of them
    #[arg(long, short)]
    all: bool,
    /// Only runs of which this is true; may be repeated
    #[arg(long, value_name = "STATUS", value_parser = state::parser())]
    status: Vec<State>,
    /// Only runs that were started in this directory
    #[arg(long)]
    here: bool,
    /// Only runs in which something happened since then, as 90s, 2h or 3d ago
    #[arg(long, value_name = "AGE", value_parser = duration::parse_age)]
    since: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let store = session.existing_store()?;
        let mut all = store.list().map_err(|error| named::failure(&error))?;
        for run in &mut all {
            leave_out_answered(&store, run);
        }
        let now = SystemClock.now();
        let limit = match self.limit {
            Some(limit) => limit,
            None if self.all || self.json => usize::MAX,
            None => USUAL,
        };
        let (chosen, more) = self.chosen(&all, now, limit, session);
        if self.json {
            output.json(&chosen.into_iter().map(Told::of).collect::<Vec<_>>());
        } else if chosen.is_empty() && more == 0 {
            say_none(&store, all.len(), output);
        } else {
            Rows::of(&chosen, &all, now).print(&output.out);
            if more > 0 && !output.is_quiet() {
                let mark = output.out.ellipsis();
                let line = format!("{mark} and {more} more; --all shows them");
                output.err.line(output.err.paint(Style::Dim, line));
            }
        }
        Ok(ExitCode::Done)
    }

    /// Returns those that are wanted, up to a limit, and how many more there are.
    fn chosen<'s>(
        &self,
        all: &'s [Summary],
        now: Timestamp,
        limit: usize,
        session: &Session<'_>,
    ) -> (Vec<&'s Summary>, usize) {
        let here = session.working_directory();
        let mut wanted = all.iter().filter(|run| self.is_wanted(run, now)).filter(|run| {
            let is_here = |place: &PathBuf| is_same_directory(place, here);
            !self.here || run.directory.as_ref().is_some_and(is_here)
        });
        let chosen = wanted.by_ref().take(limit).collect();
        (chosen, wanted.count())
    }

    fn is_wanted(&self, run: &Summary, now: Timestamp) -> bool {
        let status = self.status.is_empty() || self.status.contains(&State::of(run));
        status && self.since.is_none_or(|since| run.last_activity.after(since) >= now)
    }
}

/// A run as programs read it, with the word that people see.
#[derive(Debug, Serialize)]
struct Told<'s> {
    #[serde(flatten)]
    run: &'s Summary,
    status: &'static str,
}

impl<'s> Told<'s> {
    fn of(run: &'s Summary) -> Self {
        Self { run, status: State::of(run).word() }
    }
}

/// A question that has an answer in the run's inbox waits for nobody any more.
fn leave_out_answered(store: &Store, run: &mut Summary) {
    if run.open_questions > 0 {
        let answered = unanswered::letters(store, &run.run);
        run.open_questions = run.open_questions.saturating_sub(answered);
    }
}

/// Says that there is nothing to list, and why.
fn say_none(store: &Store, others: usize, output: &Output) {
    if output.is_quiet() {
        return;
    }
    let place = store.root().display();
    if others > 0 {
        output.err.line(format_args!("no run is like that, of {others} in {place}"));
    } else {
        output.err.line(format_args!("there are no runs in {place}"));
        output.err.line("convoke run \"…\" makes one");
    }
}
