//! `convoke config explain`: why a setting has its value.

use clap::Args;
use convoke::config::{Explanation, Layer};
use convoke_core::ExitCode;

use super::show::print_entries;
use super::shown;
use crate::failure::{self, Failure};
use crate::output::{Output, Stream, Style, Table, wrap};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  convoke config explain tools.timeout
  convoke config explain policy.kinds
  convoke config explain tools.timeout --set tools.timeout=5000 --json";

/// Explain why a setting, or each setting of a section, has its value
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Explain {
    /// The key, as tools.timeout
    key: String,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
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
        let explanation = loaded.explain(&self.key).map_err(|error| {
            Failure::usage(error.to_string()).hint("`convoke config show --all` lists all keys")
        })?;
        if self.json {
            output.json(&explanation);
        } else {
            print(&explanation, &output.out);
        }
        Ok(ExitCode::Done)
    }
}

fn print(explanation: &Explanation, out: &Stream) {
    out.line(out.paint(Style::Name, &explanation.key));
    if let Some(alias) = &explanation.alias {
        out.line(format_args!("  {alias} is another spelling of it."));
    }
    let room = out.width().map(|width| width.min(100).saturating_sub(2));
    for line in wrap(explanation.description.as_deref().unwrap_or_default(), room) {
        out.line(format_args!("  {}", out.printable(&line)));
    }
    out.gap();
    if explanation.entries.is_empty() {
        print_value(explanation, out);
    } else {
        print_entries(&explanation.entries, 2, out);
    }
}

fn print_value(explanation: &Explanation, out: &Stream) {
    let mut table = Table::indented(2);
    let value = explanation.value.as_ref().map_or("not set".to_owned(), shown);
    table.row([("value".to_owned(), None), (value, Some(Style::Name))]);
    if let Some(origin) = &explanation.origin {
        table.row([("from".to_owned(), None), (origin.to_string(), None)]);
    }
    if let Some(default) = &explanation.default {
        table.row([("default".to_owned(), None), (shown(default), None)]);
    }
    let written = explanation.overridden.iter().filter(|it| it.origin.layer != Layer::BuiltIn);
    for lower in written {
        let text = format!("{} from {}", shown(&lower.value), lower.origin);
        table.row([("overrides".to_owned(), None), (text, Some(Style::Dim))]);
    }
    table.print(out);
}
