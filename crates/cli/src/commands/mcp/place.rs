//! Which file servers are written into: the user's or the project's.

use std::path::{Path, PathBuf};

use clap::Args;
use convoke::config::Config;
use convoke::mcp::client::ServerConfig;

use super::add::text_of;
use super::edit::{Edit, variables};
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::session::Session;

/// Whose file it is.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct PlaceFlag {
    /// Change the project's convoke.yml, in place of your own file
    #[arg(long)]
    project: bool,
}

impl PlaceFlag {
    /// Returns the file. The configuration has to be loaded already.
    pub(super) fn file(self, session: &Session<'_>) -> Result<PathBuf, Failure> {
        if !self.project {
            return session.own_file();
        }
        let found = session.sources()?.project_file();
        Ok(found.unwrap_or_else(|| session.project_directory().join("convoke.yml")))
    }

    /// Tells whether the project's file is meant.
    pub(super) const fn is_projects(self) -> bool {
        self.project
    }

    /// Says what follows from a change of the file.
    pub(super) fn warn(self, output: &mut Output) {
        if self.project && !output.is_quiet() {
            failure::hint(
                output,
                "what the project's file says counts once it is trusted as it is now: `convoke config trust`",
            );
        }
    }
}

/// Opens a file to be changed. Nobody else changes it meanwhile.
pub(super) fn open<'a>(path: &'a Path, session: &Session<'_>) -> Result<Edit<'a>, Failure> {
    Edit::open(path, session.environment().variables())
}

/// Opens a file to see what would come of a change.
pub(super) fn look<'a>(path: &'a Path, session: &Session<'_>) -> Result<Edit<'a>, Failure> {
    Edit::look(path, session.environment().variables())
}

/// Returns the configuration, as far as it can be used: a file can be put right also where it is not.
pub(super) fn known(session: &Session<'_>, output: &mut Output) -> Option<Config> {
    match session.load(output) {
        Ok(loaded) => Some(loaded.config),
        Err(failure) => {
            failure::doubt(output, &failure.to_string());
            None
        }
    }
}

/// Says which variables a server asks for and nobody has set: without them it is left out.
pub(super) fn warn_of_variables(server: &ServerConfig, session: &Session<'_>, output: &mut Output) {
    let (text, server) = (text_of(server), &server.name);
    let set = session.environment().variables();
    for name in variables(&text).into_iter().filter(|name| !set.contains_key(name)) {
        failure::warning(
            output,
            &format!(
                "the variable {name} is not set: until it is, the server `{server}` is left out"
            ),
        );
        failure::hint(output, &format!("`${{{name}:-}}` stands for nothing where it is not set"));
    }
}
