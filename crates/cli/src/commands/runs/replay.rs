//! `convoke runs replay`: a run is done again, offline, and compared with what was recorded.

use clap::Args;
use convoke::agent::replay;
use convoke_core::{Cause, ExitCode};
use serde::Serialize;

use super::goes_on::refuse_served;
use super::named::{LastFlag, Opened};
use super::show::damaged;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
Nothing is asked and nothing is changed: answers of the model, results of tools and the time come from the \
record. Everything else is decided again and has to come out the same.

Examples:
  convoke runs replay --last
  convoke runs replay 1k2m --json";

/// Do a run again, offline, and compare
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Replay {
    /// The run, or any part of its id that no other run has
    #[arg(value_name = "ID", num_args = 0..=1)]
    words: Vec<String>,
    #[command(flatten)]
    last: LastFlag,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    run: String,
    same: bool,
    events: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided: Option<usize>,
    /// The first event that came out differently.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
}

impl Replay {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let Opened { id, recorded, .. } = Opened::of(session, &self.words, self.last)?;
        refuse_served(&id, &recorded.events)?;
        // What is not as it was recorded cannot be compared, nor what follows from it.
        let intact = recorded.intact();
        let (run, events) = (id.to_string(), intact.len());
        match replay(&id, intact) {
            Ok(again) => {
                if self.json {
                    let decided = Some(again.decided);
                    let (seq, difference) = (None, None);
                    output.json(&Report { run, same: true, events, decided, seq, difference });
                } else {
                    let events = amounts::count(events as u64, "event");
                    let decided = amounts::count(again.decided as u64, "decision");
                    output.out.line(format_args!("{run}: the same; {events}, {decided}"));
                }
                damaged(&id, &recorded)
            }
            Err(difference) => {
                if self.json {
                    let (seq, difference) = (Some(difference.seq), Some(difference.to_string()));
                    let decided = None;
                    output.json(&Report { run, same: false, events, decided, seq, difference });
                    return Ok(ExitCode::Failed);
                }
                let failure = Failure::new(Cause::Error, format!("{run} came out differently"));
                Err(failure.because(&*difference))
            }
        }
    }
}
