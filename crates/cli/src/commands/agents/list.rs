//! `convoke agents list`: a line an agent.

use clap::Args;
use convoke::Runtime;
use convoke::agent::registry::Registered;
use convoke_core::ExitCode;
use serde_json::{Value, json};

use super::effective::Effective;
use super::{shown, source, whose};
use crate::failure::Failure;
use crate::output::{Output, Style, Table, first_sentence};
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
Agents come with Convoke, or from files: of the project (.convoke/agents, .gemini/agents, .claude/agents, \
.opencode/agent), of yours (agents beside your convoke.yml, and the same directories of other tools at \
home), and from agents.directories. The project's are there if the project is trusted: `convoke config \
trust`, or in CI CONVOKE_TRUST_PROJECT=1.

The columns are: the name; whose it is; its model, where it has its own; how many tools it has below the \
main agent; what it is good for.

Examples:
  convoke agents list
  convoke agents list --json | jq -r '.[].name'";

/// List the agents that runs can call
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct List {
    /// Print JSON
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
        Session::warn_of_agents(&runtime, output);
        let agents = runtime.agents().list();
        let offered = runtime.team().offered();
        let is_offered = |agent: &Registered| offered.iter().any(|one| one.name == agent.name);
        if self.json {
            let row = |agent| json_row(agent, is_offered(agent), &runtime);
            let mut rows: Vec<Value> = agents.iter().map(|agent| row(agent)).collect();
            rows.extend(runtime.agents_switched_off().iter().map(|agent| {
                json!({
                    "name": agent.name, "source": "shipped", "enabled": false, "offered": false,
                    "description": agent.description,
                })
            }));
            output.json(&rows);
            return Ok(ExitCode::Done);
        }
        let mut table = Table::indented(0).cut();
        for agent in &agents {
            let source = source(agent, &runtime);
            let tools = amounts::count(Effective::of(agent, &runtime).tools.len() as u64, "tool");
            let model = agent.model.model.clone().unwrap_or_else(|| "-".to_owned());
            let mark = if is_offered(agent) { "" } else { " (not offered)" };
            let from = match source {
                Some(source) => {
                    format!("{}, {}", whose(Some(source)), shown(&source.path, session))
                }
                None => whose(None).to_owned(),
            };
            table.row([
                (agent.name.clone(), Some(Style::Name)),
                (output.out.printable(&format!("{from}{mark}")).to_string(), None),
                (output.out.printable(&model).to_string(), None),
                (tools, None),
                (output.out.printable(&one_line(&agent.description)).to_string(), None),
            ]);
        }
        for agent in runtime.agents_switched_off() {
            table.row([
                (agent.name.clone(), Some(Style::Dim)),
                ("shipped (off)".to_owned(), None),
                ("-".to_owned(), None),
                (String::new(), None),
                (one_line(&agent.description), None),
            ]);
        }
        table.print(&output.out);
        Ok(ExitCode::Done)
    }
}

fn json_row(agent: &Registered, offered: bool, runtime: &Runtime) -> Value {
    let source = source(agent, runtime);
    let effective = Effective::of(agent, runtime);
    json!({
        "name": agent.name,
        "displayName": agent.display_name,
        "description": agent.description,
        "source": whose(source),
        "path": source.map(|source| source.path.display().to_string()),
        "format": source.map(|source| source.format.as_str()),
        "model": agent.model.model,
        "tools": effective.tools,
        "missing": effective.missing,
        "enabled": true,
        "offered": offered,
    })
}

fn one_line(description: &str) -> String {
    first_sentence(description).split_whitespace().collect::<Vec<_>>().join(" ")
}
