//! `convoke agents new`: a file to begin with.

use std::path::PathBuf;

use clap::Args;
use convoke::agent::check::check_name;
use convoke_core::ExitCode;
use serde_json::json;

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
        session.load(output)?;
        let is_projects = self.dir.is_none();
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
            let name = &self.name;
            output.err.line(format_args!(
                "say in it what {name} is good for; `convoke agents check {name}` says what comes of it"
            ));
            if let Some(how) = session.how_to_trust().filter(|_| is_projects) {
                let message = "this project is not trusted, so nobody can call it yet";
                failure::warning(output, message);
                failure::hint(output, &how);
            }
        }
        Ok(ExitCode::Done)
    }
}
