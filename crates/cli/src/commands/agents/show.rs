//! `convoke agents show`: everything about an agent, as it is below the main agent.

use clap::Args;
use convoke::{AgentOff, KnownAgent, NotOffered};
use convoke_core::ExitCode;
use serde_json::{Map, Value, json};

use super::effective::Effective;
use super::{known, shown, whose};
use crate::failure::{self, Failure};
use crate::output::{Output, Style, Table};
use crate::session::Session;

const AFTER_HELP: &str = "\
What is shown is what holds: the definition with what agents.overrides changes, and then what the agent has \
and may do below the main agent. One that is switched off, or not offered to the main agent, is shown with the \
key that does it; `cut` is what of its limits it does not get. Kinds of calls that its own rules decide about are \
shown so; rules on some calls only are counted, and `convoke policy show --agent` lists them.

Examples:
  convoke agents show codebase_investigator
  convoke agents show reviewer --json";

/// Show everything about an agent
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Show {
    /// The agent
    name: String,
    /// Print JSON
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
        let runtime = session.runtime(session.load(output)?.config)?;
        let KnownAgent { agent, source, off, .. } = known(&self.name, &runtime, session)?;
        Session::warn_of_agent(&self.name, &runtime, output);
        let not_offered = runtime.not_offered(&self.name).filter(|_| off.is_none());
        let source = source.as_ref();
        let effective = Effective::of(&agent, &runtime);
        if self.json {
            let fields = agent.outline().fields();
            let definition: Map<String, Value> =
                fields.map(|(name, text)| (name.to_owned(), text.into())).collect();
            output.json(&json!({
                "name": agent.name,
                "source": whose(source),
                "path": source.map(|source| source.path.display().to_string()),
                "format": source.map(|source| source.format.as_str()),
                "enabled": off.is_none(),
                "offBy": off.as_ref().map(AgentOff::key),
                "offered": off.is_none() && not_offered.is_none(),
                "notOfferedBy": not_offered.map(NotOffered::key),
                "definition": definition,
                "inputSchema": agent.input.schema(),
                "effective": effective,
            }));
            return Ok(ExitCode::Done);
        }
        output.out.text(output.out.printable(&agent.outline().to_string()));
        output.out.gap();
        let from = match source {
            Some(source) => format!("{} ({})", whose(Some(source)), shown(&source.path, session)),
            None => whose(None).to_owned(),
        };
        output.out.line(output.out.paint(Style::Heading, "below the main agent"));
        let mut facts = vec![("source", from)];
        facts.extend(off.map(|off| ("off", off.to_string())));
        facts.extend(not_offered.map(|why| ("not offered", why.to_string())));
        facts.extend(effective.lines());
        if !effective.cut.is_empty() {
            facts.push(("cut", effective.cut.join(", ")));
        }
        Table::facts(facts, &output.out);
        if let Some(why) = &effective.no_model {
            failure::warning(output, why);
        }
        match effective.unusable {
            Some(why) => Err(Failure::configuration(format!(
                "the agent `{}` cannot be started: {why}",
                agent.name
            ))),
            None => Ok(ExitCode::Done),
        }
    }
}
