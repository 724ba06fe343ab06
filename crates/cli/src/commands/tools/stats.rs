//! `convoke tools stats`: how many tools there are.

use clap::Args;
use convoke_core::ExitCode;

use crate::failure::Failure;
use crate::output::{Output, Style, Table};
use crate::session::Session;

const AFTER_HELP: &str = "\
Calls are counted by the process that makes them. This command is a process of its own and calls \
nothing, so it has no calls to count; a program that uses the library finds them in \
`ToolRegistry::stats`.

Examples:
  convoke tools stats
  convoke tools stats --json";

/// Count the tools there are, by category
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Stats {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Stats {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let runtime = session.runtime(session.load(output)?.config)?;
        let stats = runtime.registry().stats();
        if self.json {
            output.json(&stats);
            return Ok(ExitCode::Done);
        }
        let mut table = Table::default();
        for (category, count) in &stats.by_category {
            table.row([(category.to_string(), Some(Style::Name)), (format!("{count:>3}"), None)]);
        }
        table.row([("total".to_owned(), Some(Style::Name)), (format!("{:>3}", stats.total), None)]);
        table.print(&output.out);
        if !output.is_quiet() {
            output.out.gap();
            output
                .out
                .line("No calls to count: each process counts its own, and this one made none.");
        }
        Ok(ExitCode::Done)
    }
}
