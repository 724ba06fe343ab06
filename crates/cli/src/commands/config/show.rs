//! `convoke config show`: the values that hold.

use clap::Args;
use convoke::config::{Entry, Layer};
use convoke_core::ExitCode;

use super::shown;
use crate::failure::{self, Failure};
use crate::output::{Output, Stream, Style, Table};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  convoke config show
  convoke config show --all
  convoke config show --set tools.timeout=5000 --json";

/// Show the settings that differ from what is built in, and where each was written
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Show {
    /// Show every setting
    #[arg(long)]
    all: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let loaded = session.load(output)?;
        if let Some(warning) = loaded.entries_warning() {
            failure::warning(output, &warning);
        }
        let wanted = |entry: &Entry| self.all || entry.origin.layer != Layer::BuiltIn;
        let entries: Vec<Entry> = loaded.entries().filter(wanted).collect();
        if self.json {
            output.json(&entries);
        } else if entries.is_empty() {
            if !output.is_quiet() {
                output.err.line("Every setting is as it is built in; `--all` shows them.");
            }
        } else {
            print_entries(&entries, 0, &output.out);
        }
        Ok(ExitCode::Done)
    }
}

/// Writes a line a setting: key, value, where it comes from.
pub(super) fn print_entries(entries: &[Entry], indent: usize, out: &Stream) {
    let mut table = Table::indented(indent);
    for entry in entries {
        table.row([
            (entry.key.clone(), Some(Style::Name)),
            (shown(&entry.value), None),
            (entry.origin.to_string(), Some(Style::Dim)),
        ]);
    }
    table.print(out);
}
