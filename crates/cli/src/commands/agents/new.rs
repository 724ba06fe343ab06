//! `convoke agents new`: a file to begin with.

use std::path::{Path, PathBuf};

use clap::Args;
use convoke::agent::check::check_name;
use convoke::agent::files::AgentOrigin;
use convoke::agent::shipped;
use convoke_core::ExitCode;
use serde_json::json;

use super::check::directory::is_same;
use super::shown;
use crate::failure::{self, Failure};
use crate::files;
use crate::output::Output;
use crate::session::Session;

const AFTER_HELP: &str = "\
The file is an agent as it is. Below the keys is what the agent is told; the keys are:
  name, description, display_name      what it is called, and what models choose it by
  model, temperature, top_p, thinking_budget, reasoning_effort
                                       which model works for it, and how it is asked
  tools, exclude_tools, agents         what it may call
  mode, rules, commands                what it may do with it
  max_turns, max_time_minutes, budget  what it may use: turns, time, tokens, cost, tool_calls
  inputs or input_schema               what goes in
  output or output_schema              what comes out
  query, initial_messages              what it is asked, and a conversation it begins with
  workspace, context, background, at_most_once, on_stuck
                                       where and how it works
  system_prompt                        what it is told, in a file of keys only

Examples:
  convoke agents new reviewer
  convoke agents new reviewer --dir ~/.config/convoke/agents
  convoke agents check reviewer";

/// The file, with `NAME` for the name.
const TEMPLATE: &str = include_str!("new/agent.md");

/// Write a file for a new agent
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct New {
    /// Its name: letters, digits, _ and -
    name: String,
    /// The directory; without it, the project's
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How the file is written
    #[arg(long, value_name = "FORMAT", default_value = "convoke", value_parser = ["convoke"])]
    format: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl New {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        check_name(&self.name).map_err(Failure::usage)?;
        let more = session.load(output)?.config.agents.directories;
        let directory = match &self.dir {
            Some(directory) => session.absolute(directory),
            None => session.project_agents(),
        };
        let path = directory.join(format!("{}.md", self.name));
        let shown = shown(&path, session);
        if path.symlink_metadata().is_ok() {
            return Err(Failure::usage(format!("there is a file `{shown}` already"))
                .hint("use another name, or change that file"));
        }
        let written = files::make_directory(&directory)
            .and_then(|()| files::put(&path, &TEMPLATE.replace("NAME", &self.name)));
        written.map_err(|error| {
            Failure::failed(format!("`{shown}` cannot be written")).because(&error)
        })?;
        if self.json {
            output.json(&json!({
                "name": self.name,
                "path": path.display().to_string(),
                "format": self.format,
            }));
        } else {
            output.out.line(output.out.printable(&shown));
        }
        if !output.is_quiet() {
            let searched = Searched::of(&directory, &more, session);
            self.tell(searched, &shown, session, output);
        }
        Ok(ExitCode::Done)
    }

    /// Says what to do with the file, and what becomes of it where it is.
    fn tell(&self, searched: Searched, shown: &str, session: &Session<'_>, output: &mut Output) {
        let name = &self.name;
        let checked = if searched == Searched::No { shown } else { name };
        output.err.line(output.err.printable(&format!(
            "say in it what {name} is good for; `convoke agents check {checked}` says what comes of it"
        )));
        if searched == Searched::No {
            let message = "nobody can call it there: agents are not looked for in that directory";
            failure::warning(output, message);
            failure::hint(
                output,
                "`agents.directories` names directories of agents beside the usual ones",
            );
            return;
        }
        if shipped::all().iter().any(|agent| agent.name == *name) {
            let message = format!("it takes the place of the `{name}` that comes with Convoke");
            failure::warning(output, &message);
        }
        if let Some(how) = session.how_to_trust().filter(|_| searched == Searched::AsProjects) {
            let message = "this project is not trusted, so nobody can call it yet";
            failure::warning(output, message);
            failure::hint(output, &how);
        }
    }
}

/// Whether agents are looked for in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Searched {
    /// They are.
    Yes,
    /// They are, once the project is trusted.
    AsProjects,
    /// They are not.
    No,
}

impl Searched {
    fn of(directory: &Path, more: &[PathBuf], session: &Session<'_>) -> Self {
        let usual = session.agent_directories();
        let usual = usual.iter().find(|usual| is_same(&usual.path, directory));
        match usual.map(|usual| usual.origin) {
            Some(AgentOrigin::Project) => Self::AsProjects,
            Some(_) => Self::Yes,
            None if more.iter().any(|more| is_same(more, directory)) => Self::Yes,
            None => Self::No,
        }
    }
}
