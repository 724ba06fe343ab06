//! `convoke runs resume`: a run goes on where it was, or gets more to do.

use clap::Args;
use convoke_core::ExitCode;

use super::goes_on::{GoesOn, journals};
use super::named;
use crate::failure::{Failure, doubt};
use crate::output::Output;
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
A run that was interrupted goes on where it was: what had ended is not done again, what would do harm if \
it were done twice is not done again either, and the model is told. A run that ended goes on with a \
message, and its turns, its time and its calls are counted anew; money and tokens are counted over all of it.

The run keeps its directory, its freedom, its tools and its model. Flags change that; --tools can only take \
tools away, since the model knows no others.

Examples:
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
        let (id, rest) = named::run(&store, &self.goes_on.words, self.goes_on.last)?;
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
        self.goes_on.work(reopened, message, session, output)
    }
}
