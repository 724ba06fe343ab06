//! `convoke runs fork`: a new run that begins with the first events of another.

use clap::Args;
use convoke::journal::{JournalError, Store};
use convoke_core::{Cause, ExitCode, Run, RunId};

use super::super::workspace;
use super::goes_on::{GoesOn, journals, refuse_served};
use super::named;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
The run that is copied stays as it is. `convoke runs show ID` has the numbers of its events.

Examples:
  convoke runs fork 1k2m --at 42 \"Try it with a hash map instead\"
  convoke runs fork --last --model openai/gpt-5 \"Do it once more\"
  convoke runs fork 1k2m --at 42 --dry-run        what it would inherit";

/// Go on from the middle of a run, in another one
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Fork {
    #[command(flatten)]
    goes_on: GoesOn,
    /// The last event they share; all of them if absent
    #[arg(long, value_name = "SEQ")]
    at: Option<u64>,
    /// Say what it would inherit, and do nothing
    #[arg(long)]
    dry_run: bool,
}

impl Fork {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let ended = self.work(session, output);
        self.goes_on.output.tell(&ended, output);
        ended
    }

    fn work(&self, session: &Session<'_>, output: &mut Output) -> Result<ExitCode, Failure> {
        let store = session.existing_store()?;
        let (id, rest) = named::run(&store, &self.goes_on.words, self.goes_on.last, session)?;
        let message = GoesOn::message(rest)?;
        let at = match self.at {
            Some(at) => at,
            None => last_event(&store, &id).map_err(|error| named::failure(&error))?,
        };
        let shared = store.forked(&id, at).map_err(|error| named::failure(&error))?;
        refuse_served(&id, &shared)?;
        workspace::refuse_copies(&shared)?;
        let run = Run::replay(id.clone(), &shared);
        let inherits = |run: &Run| {
            let turns = amounts::count(run.turns().into(), "turn");
            let tokens = amounts::tokens(run.context_tokens());
            let events = amounts::count(at, "event");
            format!("inherits {events} of {id}: {turns}, about {tokens} tokens with every request")
        };
        let done = run.outcome().is_some_and(|outcome| outcome.cause == Cause::Goal);
        if self.dry_run {
            output.out.line(inherits(&run));
            if done && message.is_none() && !output.is_quiet() {
                let note = "the run is done there: its fork has to be told what more to do";
                output.err.line(note);
            }
            return Ok(ExitCode::Done);
        }
        if done && message.is_none() {
            return Err(Failure::usage(format!("run `{id}` is done at event {at}"))
                .hint("say what more its fork is to do, or fork it earlier with --at"));
        }
        let more = if message.is_some() { " \"…\"" } else { "" };
        let command = format!("runs fork {id} --at {at}{more}");
        let session = self.goes_on.agree((&id, &shared), &command, session, output)?;
        let forked = journals(&store).fork(&id, at).map_err(|error| named::failure(&error))?;
        if !output.is_quiet() {
            output.err.line(format_args!("{} {}", forked.paused.id(), inherits(&run)));
        }
        self.goes_on.work(forked, message, &session, output)
    }
}

/// Returns the number of the last event of a run that is intact.
fn last_event(store: &Store, id: &RunId) -> Result<u64, JournalError> {
    let recorded = store.read(id)?;
    match recorded.damage {
        Some(damage) => Err(JournalError::Damaged { run: id.clone(), damage }),
        None => Ok(recorded.events.len() as u64),
    }
}
