//! `convoke runs resume`: a run goes on where it was, or gets more to do.

use clap::Args;
use convoke_core::ExitCode;

use super::goes_on::{GoesOn, journals, refuse_never_started, refuse_served};
use super::named::{self, LastFlag};
use crate::failure::{Failure, doubt};
use crate::output::Output;
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
A run that was interrupted goes on where it was: what had ended is not done again, what would do harm if \
it were done twice is not done again either, and the model is told. A run that ended goes on with a \
message, and its turns, its time and its calls are counted anew; money and tokens are counted over all of it. \
Without a message, a run that is done prints its answer once more. A run that was lost before anything was \
recorded never started: there is nothing to resume (exit code 9).

The run keeps its directory, its freedom, its tools and its model. Flags change that; --tools can only take \
tools away, since the model knows no others. A run of another directory, or of a mode that is freer than \
`default`, is resumed after you agreed; where nobody can be asked, the command that resumes it is told.

Examples:
  convoke runs resume                              the run of this directory that was last worked on
  convoke runs resume --last
  convoke runs resume 1k2m \"Now write a test for it\"
  convoke runs resume 1k2m --max-turns 60
  convoke runs resume 1k2m --model anthropic/claude-sonnet-4-5 \"Have another look\"";

/// Go on with a run
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Resume {
    #[command(flatten)]
    goes_on: GoesOn,
}

impl Resume {
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
        let GoesOn { words, last, .. } = &self.goes_on;
        let last = if words.is_empty() && !last.last { LastFlag::HERE } else { *last };
        let (id, rest) = named::run(&store, words, last, session)?;
        let message = GoesOn::message(rest)?;
        let reopened = journals(&store).reopen(&id).map_err(|error| named::failure(&error))?;
        if let Some(repair) = reopened.repaired {
            let bytes = amounts::count(repair.bytes, "byte");
            let were = if repair.bytes == 1 {
                "that was never accepted was"
            } else {
                "that were never accepted were"
            };
            doubt(
                output,
                &format!("the journal ended in the middle of a line; {bytes} {were} cut off"),
            );
        }
        for damage in &reopened.lost {
            doubt(output, &format!("{damage}; the run goes on without that text"));
        }
        refuse_served(&id, &reopened.events)?;
        refuse_never_started(&id, &reopened.events)?;
        if message.is_none()
            && let Some(code) = self.goes_on.tell_again(&reopened, output)
        {
            if !output.is_quiet() {
                let more = format!("`convoke runs resume {id} \"…\"` gives it more to do");
                output.err.line(format_args!("run {id} was done before; {more}"));
            }
            return Ok(code);
        }
        let more = if message.is_some() { " \"…\"" } else { "" };
        let command = format!("runs resume {id}{more}");
        let session = self.goes_on.agree((&id, &reopened.events), &command, session, output)?;
        self.goes_on.work(reopened, message, &session, output)
    }
}
