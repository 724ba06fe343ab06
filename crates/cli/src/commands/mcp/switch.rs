//! `convoke mcp enable` and `disable`: a server is used, or kept for later.

use clap::Args;
use convoke::ListedServer;
use convoke::config::Author;
use convoke_core::ExitCode;

use super::edit::Switch;
use super::place::{PlaceFlag, known, open};
use super::{find, runtime};
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::session::Session;

const AFTER_ENABLE: &str = "\
Undoes what `convoke mcp disable` did.

Examples:
  convoke mcp enable files";

const AFTER_DISABLE: &str = "\
The server stays in its file, and is neither started nor shown to models. One that the project or another file has \
is switched off for you alone, in your own file; --project switches one off for all who work on the project.

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
        let for_oneself = if edit.has(name)? {
            let is_switch = edit.only_switches(name)?;
            if is_switch && on == Switch::On {
                edit.remove(name)?;
            } else {
                edit.switch(name, on)?;
            }
            is_switch && !self.place.is_projects()
        } else {
            let runtime = runtime(session, output).ok();
            let found = runtime.as_ref().and_then(|runtime| find(name, runtime).ok());
            let listed = found.map(|(_, listed)| listed);
            if listed.is_none() || on == Switch::On || self.place.is_projects() {
                let failure = Failure::usage(format!("there is no MCP server `{name}` in {shown}"));
                let hints = self.elsewhere(on, listed);
                return Err(hints.into_iter().fold(failure, Failure::hint));
            }
            edit.switch_off_elsewhere(name)?;
            true
        };
        edit.write()?;
        if !output.is_quiet() {
            let line = format!("{done} {name} in {shown}");
            output.err.line(output.err.printable(&line));
        }
        if on == Switch::Off && !output.is_quiet() {
            if for_oneself {
                failure::hint(output, "it is off for you alone, wherever a server has this name");
            }
            failure::hint(output, "chats and runs that are under way use it until they end");
        }
        self.place.warn(output);
        Ok(ExitCode::Done)
    }

    /// Says what to do about a server that is written elsewhere.
    fn elsewhere(&self, on: Switch, listed: Option<&ListedServer>) -> Vec<String> {
        let name = &self.name;
        let unknown = || vec!["`convoke mcp list --json` says which file each is in".to_owned()];
        let Some(listed) = listed else { return unknown() };
        let first = match (&listed.file, listed.author, on) {
            (_, _, Switch::On) if listed.config.enabled => {
                return vec![format!("`{name}` is in use already")];
            }
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
            format!(
                "that is for everybody who works on the project; `convoke mcp disable {name}` switches it off \
                 for you alone"
            )
        });
        std::iter::once(first).chain(for_oneself).collect()
    }
}
