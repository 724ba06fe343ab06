//! `convoke runs apply`: what a run changed in its own workspace is taken over.

use clap::Args;
use convoke::workspace::Apply as How;
use convoke_core::{ExitCode, FileChange, RunId};
use serde::Serialize;

use super::super::run::watch;
use super::super::workspace;
use super::named;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::view::amounts;
use crate::view::workspace::list;

const AFTER_HELP: &str = "\
The changes are made to the files of the directory the run was started in; those of an agent, to the files its \
caller worked with, which may be a workspace too. Nothing is committed. Where one of them \
does not fit what is there now, none is made, and the files are named. The workspace stays until \
`convoke runs rm` removes the run.

Examples:
  convoke runs apply --last --check
  convoke runs apply 1k2m";

/// Take over what a run changed in its own workspace
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Apply {
    /// The run, or any part of its id that no other run has; or an agent that a run called
    #[arg(value_name = "ID", num_args = 0..=1)]
    words: Vec<String>,
    /// The run that was last worked on
    #[arg(long)]
    last: bool,
    /// Only try whether it fits
    #[arg(long)]
    check: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was done, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    run: &'a RunId,
    applied: bool,
    /// Whether the files were so already.
    already: bool,
    files: &'a [FileChange],
}

impl Apply {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let store = session.existing_store()?;
        let config = session.load(output)?.config;
        let threads = watch::threads()?;
        let (id, opened) = match named::only(&store, &self.words, self.last) {
            Ok(id) => {
                let recorded = store.read(&id).map_err(|error| named::failure(&error))?;
                let opened = workspace::of_run(&id, &recorded.events, session, &config)?;
                (id, opened)
            }
            Err(unknown) => workspace::open_below(&self.words, session, &config)?.ok_or(unknown)?,
        };
        let how = if self.check { How::Check } else { How::Really };
        let changes = threads.block_on(opened.apply(how));
        let changes = changes.map_err(|error| workspace::failure(&error))?;
        let already = changes.already;
        let applied = !self.check && !already && !changes.files.is_empty();
        if self.json {
            output.json(&Told { run: &id, applied, already, files: &changes.files });
            return Ok(ExitCode::Done);
        }
        for line in list(&changes.files, usize::MAX, &output.out) {
            output.out.line(line);
        }
        if !output.is_quiet() {
            let count = amounts::count(changes.files.len() as u64, "file");
            let place = opened.start().display().to_string();
            let place = output.err.printable(&place);
            match (changes.files.is_empty(), self.check) {
                (true, _) => output.err.line("nothing was changed, so there is nothing to apply"),
                _ if already => output.err.line(format_args!(
                    "the changes are in {place} already, so there is nothing to do"
                )),
                (_, true) => output.err.line(format_args!("{count} would be changed in {place}")),
                (_, false) => output.err.line(format_args!("{count} changed in {place}")),
            }
            let caller = workspace::run_of(opened.start(), session, &config);
            if let (Some(caller), false) = (caller, changes.files.is_empty()) {
                output.err.line(format_args!(
                    "  that is the workspace of its caller; to take it over from there: convoke runs apply \
                     {caller}"
                ));
            }
        }
        Ok(ExitCode::Done)
    }
}
