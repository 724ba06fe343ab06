//! `convoke runs diff`: what a run changed in its own workspace.

use std::process::Stdio;

use clap::Args;
use convoke::Workspace;
use convoke::journal::Store;
use convoke_core::{Event, EventBody, ExitCode, RunId, WorkspaceReport};
use serde::Serialize;

use super::super::run::watch;
use super::super::workspace;
use super::named::{self, LastFlag};
use super::show::page;
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::session::Session;
use crate::view::workspace::list;
use crate::view::{amounts, diff};

const AFTER_HELP: &str = "\
It is compared with what the run began with, so what you changed meanwhile is not in it. Of a run whose workspace is \
gone, what was recorded when it ended is shown. A long text is shown with the program that PAGER names.

Examples:
  convoke runs diff --last
  convoke runs diff 1k2m --stat          only the files
  convoke runs diff 1k2m > changes.patch";

/// Show what a run changed in its own workspace
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Diff {
    /// The run, or any part of its id that no other run has; or an agent that a run called
    #[arg(value_name = "ID", num_args = 0..=1)]
    words: Vec<String>,
    #[command(flatten)]
    last: LastFlag,
    /// Only list the files
    #[arg(long, conflicts_with = "json")]
    stat: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was changed, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    run: &'a RunId,
    #[serde(flatten)]
    report: &'a WorkspaceReport,
}

impl Diff {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let store = session.existing_store()?;
        let config = session.load(output)?.config;
        let threads = watch::threads()?;
        let (id, (report, whole)) = match named::only(&store, &self.words, self.last, session) {
            Ok(id) => {
                let recorded = store.read(&id).map_err(|error| named::failure(&error))?;
                let opened = workspace::of_run(&id, &recorded.events, session, &config);
                let seen = match (opened, last_report(&id, &recorded.events)) {
                    (Ok(opened), _) => look(&opened, &threads)?,
                    (Err(failure), None) => return Err(failure),
                    (Err(_), Some(report)) => as_recorded(report, output),
                };
                (id, seen)
            }
            Err(unknown) => {
                let below = workspace::open_below(&self.words, session, &config)?;
                if let Some((id, opened)) = below {
                    (id, look(&opened, &threads)?)
                } else {
                    let (id, report) = self.of_agent(&store).ok_or(unknown)?;
                    (id, as_recorded(&report, output))
                }
            }
        };
        if self.json {
            output.json(&Told { run: &id, report: &report });
        } else if self.stat {
            for line in list(&report.files, usize::MAX, &output.out) {
                output.out.line(line);
            }
        } else if output.out.is_terminal() {
            let whole = String::from_utf8_lossy(&whole);
            let lines = diff::whole(&whole, usize::MAX, &output.out);
            page(&lines, session, &output.out, Ok(Stdio::inherit()));
        } else {
            // As it is, so that it can be applied elsewhere.
            output.out.bytes(&whole);
        }
        if !self.json && !output.is_quiet() {
            let count = amounts::count(report.files.len() as u64, "file");
            output.err.line(format_args!("{count} changed in the {}", report.place.kind));
        }
        Ok(ExitCode::Done)
    }

    /// Returns what was recorded of the agent that is meant, if one is.
    fn of_agent(&self, store: &Store) -> Option<(RunId, WorkspaceReport)> {
        let [word] = self.words.as_slice() else { return None };
        let (_, events) = named::called(store, word)?;
        let agent = RunId::new(word.as_str());
        let report = last_report(&agent, &events)?.clone();
        Some((agent, report))
    }
}

/// Shows what was recorded, where the files are gone.
fn as_recorded(report: &WorkspaceReport, output: &mut Output) -> (WorkspaceReport, Vec<u8>) {
    if let Some(whole) = &report.whole_diff {
        let message =
            format!("this is only the beginning; all of it was in {whole}, which is gone");
        failure::doubt(output, &message);
    }
    (report.clone(), report.diff.clone().into_bytes())
}

fn look(
    opened: &Workspace,
    threads: &tokio::runtime::Runtime,
) -> Result<(WorkspaceReport, Vec<u8>), Failure> {
    let failed = |error| workspace::failure(&error);
    let changes = threads.block_on(opened.diff()).map_err(failed)?;
    let report = threads.block_on(opened.changes()).map_err(failed)?;
    let report = report.ok_or_else(|| Failure::usage("the run has no files of its own"))?;
    Ok((report, changes.diff))
}

fn last_report<'e>(run: &RunId, events: &'e [Event]) -> Option<&'e WorkspaceReport> {
    events.iter().rev().find_map(|event| match &event.body {
        EventBody::WorkspaceChanged(report) if event.run == *run => Some(report),
        _ => None,
    })
}
