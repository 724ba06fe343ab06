//! `convoke agents list`: a line an agent.

use clap::Args;
use convoke::{AgentOff, KnownAgent, Runtime};
use convoke_core::ExitCode;
use serde_json::{Value, json};

use super::effective::Effective;
use super::whose;
use crate::failure::Failure;
use crate::output::{Output, Style, Table, first_sentence};
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
Agents come with Convoke, or from files: of the project (.convoke/agents, .gemini/agents, .claude/agents, \
.opencode/agent), of yours (agents beside your convoke.yml, and the same directories of other tools at \
home), and from agents.directories. The project's are there if the project is trusted: `convoke config \
trust`, or in CI CONVOKE_TRUST_PROJECT=1.

The columns are: the name; whose it is, and whether it is off or not offered to the main agent; its model, \
where it has its own; how many tools it has below the main agent; what it is good for. `convoke agents show` \
says where its file is, and what switches it off.

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
        let agents = runtime.known_agents();
        let offered = runtime.team().offered();
        let is_offered = |known: &KnownAgent| {
            known.off.is_none() && offered.iter().any(|one| one.name == known.agent.name)
        };
        if self.json {
            let row = |known| json_row(known, is_offered(known), &runtime);
            output.json(&agents.iter().map(row).collect::<Vec<Value>>());
            return Ok(ExitCode::Done);
        }
        let mut table = Table::indented(0).cut();
        for known in &agents {
            let KnownAgent { agent, source, off, .. } = known;
            let mark = match off {
                Some(_) => " (off)",
                None if is_offered(known) => "",
                None => " (not offered)",
            };
            let tools = match off {
                Some(_) => String::new(),
                None => amounts::count(Effective::of(agent, &runtime).tools.len() as u64, "tool"),
            };
            let name = if off.is_some() { Style::Dim } else { Style::Name };
            let model = agent.model.model.as_deref().unwrap_or("-");
            table.row([
                (agent.name.clone(), Some(name)),
                (format!("{}{mark}", whose(source.as_ref())), None),
                (output.out.printable(model).to_string(), None),
                (tools, None),
                (output.out.printable(&one_line(&agent.description)).to_string(), None),
            ]);
        }
        table.print(&output.out);
        Ok(ExitCode::Done)
    }
}

fn json_row(known: &KnownAgent, offered: bool, runtime: &Runtime) -> Value {
    let KnownAgent { agent, source, off, .. } = known;
    let source = source.as_ref();
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
        "enabled": off.is_none(),
        "offBy": off.as_ref().map(AgentOff::key),
        "offered": offered,
    })
}

fn one_line(description: &str) -> String {
    first_sentence(description).split_whitespace().collect::<Vec<_>>().join(" ")
}
