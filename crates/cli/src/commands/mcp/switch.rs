//! `convoke mcp enable` and `disable`: a server is used, or kept for later.

use clap::Args;
use convoke::config::Author;
use convoke::mcp::client::names_begin;
use convoke_core::ExitCode;

use super::edit::Switch;
use super::place::{PlaceFlag, known, open};
use super::runtime;
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::session::Session;

const AFTER_ENABLE: &str = "\
Examples:
  convoke mcp enable files";

const AFTER_DISABLE: &str = "\
The server stays in the file, and is neither started nor shown to models.

Examples:
  convoke mcp disable files
  convoke mcp disable db --project";

/// Use a server that was switched off
#[derive(Debug, Args)]
#[command(after_help = AFTER_ENABLE)]
pub(crate) struct Enable {
    #[command(flatten)]
    which: Which,
}

/// Do not use a server, and keep it in its file
#[derive(Debug, Args)]
#[command(after_help = AFTER_DISABLE)]
pub(crate) struct Disable {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
struct Which {
    /// The server
    name: String,
    #[command(flatten)]
    place: PlaceFlag,
}

impl Enable {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        self.which.switch(Switch::On, "switched on", session, output)
    }
}

impl Disable {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        self.which.switch(Switch::Off, "switched off", session, output)
    }
}

impl Which {
    fn switch(
        &self,
        on: Switch,
        done: &str,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        known(session, output);
        let path = self.place.file(session)?;
        let mut edit = open(&path, session)?;
        let (name, shown) = (&self.name, path.display());
        if !edit.has(name)? {
            let failure = Failure::usage(format!("there is no MCP server `{name}` in {shown}"));
            return Err(self
                .elsewhere(on, session, output)
                .into_iter()
                .fold(failure, Failure::hint));
        }
        edit.switch(name, on)?;
        edit.write()?;
        if !output.is_quiet() {
            let line = format!("{done} {name} in {shown}");
            output.err.line(output.err.printable(&line));
        }
        if on == Switch::Off && !output.is_quiet() {
            failure::hint(output, "chats and runs that are under way use it until they end");
        }
        self.place.warn(output);
        Ok(ExitCode::Done)
    }

    /// Says what to do about a server that is written elsewhere.
    fn elsewhere(&self, on: Switch, session: &Session<'_>, output: &mut Output) -> Vec<String> {
        let name = &self.name;
        let unknown = || vec!["`convoke mcp list --json` says which file each is in".to_owned()];
        let Ok(runtime) = runtime(session, output) else { return unknown() };
        let mut listed = runtime.mcp().into_iter().flat_map(|servers| servers.listed());
        let Some(listed) = listed.find(|one| one.config.name == *name) else { return unknown() };
        let first = match (&listed.file, listed.author, on) {
            (Some(file), _, Switch::Off) => {
                let file = file.display();
                format!("it is in {file}: write \"disabled\": true there to switch it off")
            }
            (Some(file), _, Switch::On) => {
                let file = file.display();
                format!("it is in {file}: take \"disabled\": true out there to switch it on")
            }
            (None, Author::Project, _) => {
                "it is in the project's convoke.yml: `--project` changes that".to_owned()
            }
            (None, Author::User, _) => return unknown(),
        };
        let for_oneself = (on == Switch::Off && listed.author == Author::Project).then(|| {
            let tools = names_begin(name);
            format!(
                "that is for everybody who works on the project; `tools.exclude: [\"{tools}*\"]` in your own file \
                 keeps its tools from your runs alone"
            )
        });
        std::iter::once(first).chain(for_oneself).collect()
    }
}
