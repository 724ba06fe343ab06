//! `convoke tools list`: a line a tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Args;
use convoke::Runtime;
use convoke_core::{Category, ExitCode};
use convoke_tool::Tool;

use super::servers::{self, Started};
use super::{Listed, category_parser};
use crate::failure::Failure;
use crate::output::{Output, Stream, Style, Table, first_sentence};
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
Examples:
  convoke tools list
  convoke tools list --category file
  convoke tools list --all
  convoke tools list --category mcp --refresh
  convoke tools list --json

The columns are: the name, with a * if models are offered the tool; what kind of call it makes; \
whether calls of it are allowed, asked about or denied by the configuration, as long as no rule on what they name \
says otherwise; what it does.

Tools of MCP servers are those that each server had when it was last asked; one that was never asked is started \
for that. --refresh asks all of them.";

/// List the tools there are
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct List {
    /// Only tools of this category
    #[arg(long, value_parser = category_parser())]
    category: Option<Category>,
    /// Also agents, as the tools they are to a model that is offered each of them
    #[arg(long)]
    all: bool,
    /// Start all MCP servers, and ask for their tools again
    #[arg(long)]
    refresh: bool,
    /// Print the specs as JSON, with `offered` and `permission`
    #[arg(long)]
    json: bool,
}

impl List {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let runtime = session.runtime(session.load(output)?.config)?;
        session.warn_of_servers_in_common(&runtime, output);
        Session::warn_of_places(|_| true, &runtime, output);
        let started = match self.category {
            None | Some(Category::Mcp) => servers::ask(&runtime, self.refresh, output)?,
            Some(_) => Started::default(),
        };
        let mut tools = if self.all { runtime.toolbox().all() } else { runtime.callable().list() };
        tools.retain(|tool| self.category.is_none_or(|wanted| tool.spec().category == wanted));
        if self.json {
            let listed: Vec<Listed<'_>> =
                tools.iter().map(|tool| Listed::new(tool.spec(), &runtime)).collect();
            output.json(&listed);
        } else {
            print(&tools, &runtime, output);
        }
        started.end(&runtime);
        Ok(ExitCode::Done)
    }
}

fn print(tools: &[Arc<dyn Tool>], runtime: &Runtime, output: &Output) {
    let mut groups: BTreeMap<Category, Table> = BTreeMap::new();
    let mut offered = 0;
    for tool in tools {
        let listed = Listed::new(tool.spec(), runtime);
        offered += usize::from(listed.offered);
        let table = groups.entry(listed.spec.category);
        row(&listed, table.or_insert_with(|| Table::indented(2).cut()), &output.out);
    }
    let widths = groups.values().map(Table::widths).fold(vec![0; 5], |widest, widths| {
        widest.iter().zip(widths).map(|(left, right)| right.max(*left)).collect()
    });
    for (category, table) in &groups {
        output.out.line(output.out.paint(Style::Heading, category));
        table.print_with(&output.out, &widths);
        output.out.gap();
    }
    if !output.is_quiet() {
        output.out.line(summary(tools.len(), offered, excluded(runtime)));
    }
}

fn row(listed: &Listed<'_>, table: &mut Table, out: &Stream) {
    let mark = if listed.offered { "*" } else { "" };
    table.row([
        (out.printable(&listed.spec.name).to_string(), Some(Style::Name)),
        (mark.to_owned(), Some(Style::Good)),
        (listed.spec.kind.to_string(), None),
        (listed.permission.to_string(), Some(Style::of(listed.permission))),
        (out.printable(first_sentence(&listed.spec.description)).to_string(), None),
    ]);
}

fn excluded(runtime: &Runtime) -> usize {
    // Servers may bring tools between the two looks.
    runtime.registry().list().len().saturating_sub(runtime.callable().list().len())
}

fn summary(tools: usize, offered: usize, excluded: usize) -> String {
    let tools = amounts::count(tools as u64, "tool");
    let excluded = match excluded {
        0 => String::new(),
        count => format!(", {count} excluded by configuration"),
    };
    format!("{tools}, {offered} offered to models (*){excluded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts() {
        assert_eq!(summary(1, 0, 0), "1 tool, 0 offered to models (*)");
        assert_eq!(
            summary(9, 3, 2),
            "9 tools, 3 offered to models (*), 2 excluded by configuration"
        );
    }
}
