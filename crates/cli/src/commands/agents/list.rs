//! `convoke agents list`: a line an agent.

use clap::Args;
use convoke::{AgentOff, KnownAgent, NotOffered, Runtime};
use convoke_core::ExitCode;
use serde_json::{Value, json};

use super::effective::Effective;
use super::note::{Note, problems};
use super::whose;
use crate::failure::{self, Failure};
use crate::output::{Output, Style, Table, first_sentence};
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
Agents come with Convoke, or from files: of the project (.convoke/agents, .gemini/agents, .claude/agents, \
.opencode/agent), of yours (agents beside your convoke.yml, and the same directories of other tools at \
home), and from agents.directories. The project's are there if the project is trusted: `convoke config \
trust`, or in CI CONVOKE_TRUST_PROJECT=1.

The columns are: the name; whose it is, and whether it is off, wrong or not offered to the main agent, or its model cannot be \
asked (no key, for instance), which is then not offered either; its model, \
where it has its own; how many tools it has below the main agent; what it is good for. `convoke agents show` \
says where its file is, and what switches it off or keeps it from the main agent. What is wrong with one is said as \
`convoke agents check` says it.

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
        let agents: Vec<Listed> = runtime
            .known_agents()
            .into_iter()
            .map(|known| Listed::of(known, &runtime, session))
            .collect();
        if self.json {
            let rows = agents.iter().map(|listed| listed.json(&runtime));
            output.json(&rows.collect::<Vec<Value>>());
            return Ok(ExitCode::Done);
        }
        let titles = ["agent", "source", "model", "tools", "about"];
        let mut table = Table::default().cut().titled(titles);
        for listed in &agents {
            let KnownAgent { agent, source, off, .. } = &listed.known;
            for problem in &listed.problems {
                failure::warning(output, &problem.text());
            }
            let mark = match (off, listed.problems.as_slice(), listed.not_offered) {
                (Some(_), ..) => " (off)",
                (None, [_, ..], _) => " (wrong)",
                (None, [], Some(NotOffered::NoModel)) => " (no model)",
                (None, [], Some(_)) => " (not offered)",
                (None, [], None) => "",
            };
            let tools = match off {
                Some(_) => String::new(),
                None => amounts::count(Effective::of(agent, &runtime).tools.len() as u64, "tool"),
            };
            let name = match mark {
                " (off)" => Style::Dim,
                " (wrong)" => Style::Bad,
                _ => Style::Name,
            };
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

/// An agent with what keeps it from being used.
struct Listed {
    known: KnownAgent,
    not_offered: Option<NotOffered>,
    /// What is wrong with it, in the words of `agents check`.
    problems: Vec<Note>,
}

impl Listed {
    fn of(known: KnownAgent, runtime: &Runtime, session: &Session<'_>) -> Self {
        let is_on = known.off.is_none();
        let not_offered = runtime.not_offered(&known.agent.name).filter(|_| is_on);
        let problems = if is_on { problems(&known, runtime, session) } else { Vec::new() };
        Self { known, not_offered, problems }
    }

    fn json(&self, runtime: &Runtime) -> Value {
        let KnownAgent { agent, source, off, .. } = &self.known;
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
            "ok": self.problems.is_empty(),
            "problems": self.problems,
            "enabled": off.is_none(),
            "offBy": off.as_ref().map(AgentOff::key),
            "offered": off.is_none() && self.not_offered.is_none(),
            "notOfferedBy": self.not_offered.map(NotOffered::key),
        })
    }
}

fn one_line(description: &str) -> String {
    first_sentence(description).split_whitespace().collect::<Vec<_>>().join(" ")
}
