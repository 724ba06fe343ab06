//! `convoke agents new`: a file to begin with.

use std::path::PathBuf;

use clap::Args;
use convoke::agent::check::check_name;
use convoke_core::ExitCode;
use serde_json::json;

use super::shown;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::session::Session;

const AFTER_HELP: &str = "\
The file has every key there is, those that are seldom needed as comments, and is an agent as it is.

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
        }
        Ok(ExitCode::Done)
    }
}
