//! The hooks of a configuration, and whether their programs are there.

use std::fmt;
use std::path::PathBuf;

use convoke::config::{Author, Config};
use convoke::find_program;
use convoke_core::hook::Moment;
use serde::Serialize;

use crate::session::Session;

/// A hook, as people are told about it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    /// Its name.
    name: String,
    /// What it starts, as it is written.
    command: String,
    /// Whether a project's file added it.
    of_project: bool,
    /// Where its program is; nothing if it is missing.
    pub(crate) program: Option<PathBuf>,
}

/// Lists the hooks that hold here, in their order.
pub(crate) fn listed(session: &Session<'_>, config: &Config) -> Vec<Listed> {
    let variables = session.environment().variables();
    let search_path = variables.get("PATH").map(String::as_str);
    let hooks = config.hooks_by_author().map(|(hook, author)| {
        let command = hook.command.first().cloned().unwrap_or_default();
        let program = find_program(&command, session.working_directory(), search_path);
        let of_project = author == Author::Project;
        Listed { name: hook.title().to_owned(), command, of_project, program }
    });
    hooks.collect()
}

/// A hook that is called about a call of a tool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Called {
    name: String,
    /// When.
    pub(crate) on: Moment,
    /// Whether it decides, or only watches.
    guards: bool,
    of_project: bool,
}

/// Lists the hooks that are called before a tool of this name runs, in the order in which they are: those
/// that are asked first, then those for which a person has to be asked.
pub(crate) fn called_for(config: &Config, tool: &str) -> Vec<Called> {
    let at = |on: Moment| {
        let hooks = config.hooks_by_author();
        let called = hooks.filter(move |(hook, _)| hook.is_called(on, Some(tool)));
        called.map(move |(hook, author)| Called {
            name: hook.title().to_owned(),
            on,
            guards: hook.guard,
            of_project: author == Author::Project,
        })
    };
    at(Moment::BeforeTool).chain(at(Moment::Approval)).collect()
}

impl fmt::Display for Called {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = if self.of_project { " of the project" } else { "" };
        let does = match (self.guards, self.on) {
            (false, _) => "is told",
            (true, Moment::BeforeTool) => "may refuse it, ask, or change it",
            (true, _) => "may refuse before a person is asked",
        };
        write!(formatter, "the hook `{}`{whose} {does}", self.name)
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = if self.of_project { " (of the project)" } else { "" };
        write!(formatter, "{}{whose}: ", self.name)?;
        match &self.program {
            Some(path) => write!(formatter, "{}", path.display()),
            None => write!(formatter, "`{}` is not there", self.command),
        }
    }
}
