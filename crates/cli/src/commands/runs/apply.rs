//! `convoke runs apply`: what a run changed in its own workspace is taken over.

use clap::Args;
use convoke::Workspace;
use convoke::config::Config;
use convoke::journal::Store;
use convoke::workspace::{Apply as How, Changes};
use convoke_core::{ExitCode, FileChange, RunId};
use serde::Serialize;

use super::super::run::watch;
use super::super::workspace;
use super::named::{self, LastFlag};
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::view::amounts;
use crate::view::workspace::list;

const AFTER_HELP: &str = "\
The changes are made to the files of the directory the run was started in; those of an agent, to the files its \
caller worked with, which may be a workspace too. Nothing is committed. Where one of them \
does not fit what is there now, none is made, and the files are named. What was applied before and was undone in the \
workspace since is taken back. The workspace stays until `convoke runs rm` removes the run.

Examples:
  convoke runs apply --last --check
  convoke runs apply 1k2m";

const NOTHING: &str = "nothing was changed, so there is nothing to apply";

/// Take over what a run changed in its own workspace
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Apply {
    /// The run, or any part of its id that no other run has; or an agent that a run called
    #[arg(value_name = "ID", num_args = 0..=1)]
    words: Vec<String>,
    #[command(flatten)]
    last: LastFlag,
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
    /// Those of them that were applied before, and are again as they were at the start.
    taken_back: &'a [String],
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
        let (id, opened) = self.find(&store, session, &config)?;
        let Some(opened) = opened else {
            self.say_nothing_changed(&id, output);
            return Ok(ExitCode::Done);
        };
        let how = if self.check { How::Check } else { How::Really };
        let changes = threads.block_on(opened.apply(how));
        let changes = changes.map_err(|error| workspace::failure(&error))?;
        self.say(&id, &opened, &changes, output);
        let caller = workspace::run_of(opened.start(), session, &config);
        let is_told = !self.json && !output.is_quiet() && !changes.files.is_empty();
        if let Some(caller) = caller.filter(|_| is_told) {
            output.err.line(format_args!(
                "  that is the workspace of its caller; to take it over from there: convoke runs apply \
                 {caller}"
            ));
        }
        Ok(ExitCode::Done)
    }

    /// Finds what is meant. There is no workspace where nothing was changed in it, so that it was removed.
    fn find(
        &self,
        store: &Store,
        session: &Session<'_>,
        config: &Config,
    ) -> Result<(RunId, Option<Workspace>), Failure> {
        match named::only(store, &self.words, self.last, session) {
            Ok(id) => {
                let recorded = store.read(&id).map_err(|error| named::failure(&error))?;
                if workspace::is_gone_unchanged(&id, &recorded.events, session, config) {
                    return Ok((id, None));
                }
                let opened = workspace::of_run(&id, &recorded.events, session, config)?;
                Ok((id, Some(opened)))
            }
            Err(unknown) => {
                if let Some((id, opened)) = workspace::open_below(&self.words, session, config)? {
                    return Ok((id, Some(opened)));
                }
                let agent = self.unchanged_agent(store, session, config).ok_or(unknown)?;
                Ok((agent, None))
            }
        }
    }

    /// Says what was done.
    fn say(&self, id: &RunId, opened: &Workspace, changes: &Changes, output: &mut Output) {
        let Changes { files, already, taken_back, .. } = changes;
        if self.json {
            let applied = !self.check && !already && !files.is_empty();
            output.json(&Told { run: id, applied, already: *already, files, taken_back });
            return;
        }
        for line in list(files, usize::MAX, &output.out) {
            output.out.line(line);
        }
        if output.is_quiet() {
            return;
        }
        let count = amounts::count(files.len() as u64, "file");
        let place = opened.start().display().to_string();
        let place = output.err.printable(&place);
        match (files.is_empty(), self.check) {
            (true, _) => output.err.line(NOTHING),
            _ if *already => output.err.line(format_args!(
                "the changes are in {place} already, so there is nothing to do"
            )),
            (_, true) => output.err.line(format_args!("{count} would be changed in {place}")),
            (_, false) => output.err.line(format_args!("{count} changed in {place}")),
        }
        if !taken_back.is_empty() && !already {
            let count = amounts::count(taken_back.len() as u64, "file");
            let would_be = if self.check { "would be " } else { "" };
            output.err.line(format_args!(
                "  {would_be}taken back, because it was undone after it was applied: {count}"
            ));
        }
    }

    fn say_nothing_changed(&self, id: &RunId, output: &mut Output) {
        if self.json {
            let nothing =
                Told { run: id, applied: false, already: false, files: &[], taken_back: &[] };
            output.json(&nothing);
        } else if !output.is_quiet() {
            output.err.line(NOTHING);
        }
    }

    /// Returns the agent that is meant, if its workspace is gone because it changed nothing there.
    fn unchanged_agent(
        &self,
        store: &Store,
        session: &Session<'_>,
        config: &Config,
    ) -> Option<RunId> {
        let [word] = self.words.as_slice() else { return None };
        let (_, events) = named::called(store, word)?;
        let agent = RunId::new(word.as_str());
        workspace::is_gone_unchanged(&agent, &events, session, config).then_some(agent)
    }
}
