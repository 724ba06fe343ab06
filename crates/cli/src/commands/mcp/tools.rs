//! `convoke mcp tools`: the tools of one server, with what they take.

use clap::Args;
use convoke::config::Timeout;
use convoke::mcp::client::McpTool;
use convoke_core::{ExitCode, ToolSpec};
use convoke_tool::Tool;
use serde_json::{Value, json};

use super::super::tools::show::fields::{Side, fields, required};
use super::advice::failed;
use super::{find, runtime_for, status, test};
use crate::duration;
use crate::failure::{self, Failure};
use crate::output::{Output, Style, Table, first_sentence, wrap};
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
Starts the server and asks for its tools. The columns are: the name, as the server has it; what it takes, with \
a ? behind what may be left out; what it does. --full shows all of each tool, with the name that models know it by.

Examples:
  convoke mcp tools files
  convoke mcp tools files --full
  convoke mcp tools files --json | jq -r '.[].name'";

/// List the tools of a server
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Tools {
    /// The server
    name: String,
    /// Show descriptions and parameters in full
    #[arg(long)]
    full: bool,
    /// How long the server may take to start
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    timeout: Timeout,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Tools {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let runtime = runtime_for(&self.name, session, output)?;
        let (servers, listed) = find(&self.name, &runtime)?;
        let looked = test::look(&self.name, servers, self.timeout.duration())?;
        if let Err(error) = &looked.result {
            return Err(failed(listed, error, &runtime, session));
        }
        let mut tools = servers.servers().tools();
        tools.retain(|tool| tool.server() == self.name);
        if self.json {
            let rows: Vec<Value> = tools.iter().map(row).collect();
            output.json(&rows);
            return Ok(ExitCode::Done);
        }
        if self.full {
            for tool in &tools {
                describe(tool, output);
            }
        } else {
            list(&tools, output);
        }
        let status = status(servers, &self.name);
        if tools.is_empty() && !output.is_quiet() {
            output.err.line(match status.as_ref().map_or(0, |status| status.unwanted) {
                0 => "it has no tools".to_owned(),
                unwanted => {
                    let tools = amounts::count(unwanted as u64, "tool");
                    format!("it has {tools}, and include and exclude leave none of them")
                }
            });
        }
        for (tool, why) in status.into_iter().flat_map(|one| one.unusable) {
            failure::warning(output, &format!("`{tool}` cannot be used: {why}"));
        }
        Ok(ExitCode::Done)
    }
}

fn row(tool: &McpTool) -> Value {
    let spec = tool.spec();
    json!({
        "name": tool.name(),
        "toolName": spec.name,
        "displayName": spec.display_name,
        "description": spec.description,
        "kind": spec.kind,
        "parameters": spec.parameters,
        "output": spec.output,
    })
}

fn list(tools: &[McpTool], output: &Output) {
    let out = &output.out;
    let mut table = Table::default().cut().titled(["tool", "takes", "about"]);
    for tool in tools {
        let spec = tool.spec();
        let about = first_sentence(&spec.description);
        table.row([
            (out.printable(tool.name()).to_string(), Some(Style::Name)),
            (out.printable(&taken(spec)).to_string(), Some(Style::Dim)),
            (
                out.printable(&about.split_whitespace().collect::<Vec<_>>().join(" ")).to_string(),
                None,
            ),
        ]);
    }
    table.print(out);
}

/// Returns the names of what a tool takes.
fn taken(spec: &ToolSpec) -> String {
    let required = required(&spec.parameters);
    let fields = fields(&spec.parameters, Side::Parameters);
    let shown = fields.iter().filter(|field| field.depth == 0).map(|field| {
        let mark = if required.contains(&field.name.as_str()) { "" } else { "?" };
        format!("{}{mark}", field.name)
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn describe(tool: &McpTool, output: &Output) {
    let (out, spec) = (&output.out, tool.spec());
    let name = out.printable(tool.name()).to_string();
    let known = out.printable(&spec.name).to_string();
    out.line(format_args!("{}  {}", out.paint(Style::Name, name), out.paint(Style::Dim, known)));
    let room = |indent: usize| out.width().map(|width| width.min(100).saturating_sub(indent));
    for line in wrap(&spec.description, room(2)) {
        out.line(format_args!("  {}", out.printable(&line)));
    }
    for field in fields(&spec.parameters, Side::Parameters) {
        let indent = 4 + 2 * field.depth;
        let name = out.printable(&field.name).to_string();
        let about = out.printable(&field.about).to_string();
        let (name, about) = (out.paint(Style::Name, name), out.paint(Style::Dim, about));
        out.line(format_args!("{:indent$}{name}  {about}", ""));
        for line in wrap(&field.description, room(indent + 4)) {
            out.line(format_args!("{:1$}{2}", "", indent + 4, out.printable(&line)));
        }
    }
    out.gap();
}
