//! `convoke agents`: the agents that runs can call, their files, and running one by itself.

mod check;
mod effective;
mod list;
mod new;
pub(super) mod run;
mod show;

use std::path::Path;
use std::sync::Arc;

use clap::Subcommand;
use convoke::agent::files::{AgentOrigin, AgentSource};
use convoke::agent::registry::{AgentLayer, Registered};
use convoke::{AgentCallError, Origin, Runtime};
use convoke_core::{Event, ExitCode, RunId};

use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// What can be done with agents.
#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    List(list::List),
    Show(show::Show),
    Check(check::Check),
    New(new::New),
    Run(Box<run::Run>),
}

impl Agents {
    /// Runs the command.
    pub(super) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        match self {
            Self::List(command) => command.run(session, output),
            Self::Show(command) => command.run(session, output),
            Self::Check(command) => command.run(session, output),
            Self::New(command) => command.run(session, output),
            Self::Run(command) => command.run(session, output),
        }
    }
}

/// Finds an agent by its name.
pub(super) fn find(name: &str, runtime: &Runtime) -> Result<Arc<Registered>, Failure> {
    runtime.find_agent(name).map_err(|error| {
        let failure = Failure::usage(error.to_string());
        let off = runtime.agents_switched_off().iter().any(|agent| agent.name == name);
        match error {
            AgentCallError::Unknown { .. } if off => failure.hint(format!(
                "it comes with Convoke and is switched off; `agents.overrides.{name}.enabled: true` \
                 switches it on"
            )),
            _ => failure.hint("`convoke agents list` shows them all"),
        }
    })
}

/// Returns the names of the agents that the main agent can call.
pub(super) fn offered(runtime: &Runtime) -> Vec<String> {
    if !runtime.calls_agents() {
        return Vec::new();
    }
    runtime.team().offered().iter().map(|agent| agent.name.clone()).collect()
}

/// Says no to a conversation with the main agent that would go on where an agent worked by itself.
pub(super) fn refuse_to_talk(run: &RunId, events: &[Event]) -> Result<(), Failure> {
    match Origin::of(events).and_then(|origin| origin.agent) {
        None => Ok(()),
        Some(agent) => {
            let message = format!("that run is the agent `{}` at work by itself", agent.name);
            Err(Failure::usage(message)
                .hint(format!("`convoke runs resume {run} \"…\"` gives it more to do")))
        }
    }
}

/// Returns where an agent was read from, if from a file.
fn source<'r>(agent: &Registered, runtime: &'r Runtime) -> Option<&'r AgentSource> {
    let mut loaded = runtime.agent_files().loaded.iter();
    let is_file = agent.layer() == AgentLayer::File;
    let found = loaded.find(|loaded| is_file && loaded.definition.name == agent.name)?;
    Some(&found.source)
}

/// Says whose an agent is, in a word.
fn whose(source: Option<&AgentSource>) -> &'static str {
    match source.map(|source| source.origin) {
        None => "shipped",
        Some(AgentOrigin::Project) => "project",
        Some(AgentOrigin::User) => "user",
        Some(AgentOrigin::Extra) => "extra",
    }
}

/// Returns a path as it is seen from the working directory, or from home.
fn shown(path: &Path, session: &Session<'_>) -> String {
    if let Ok(below) = path.strip_prefix(session.working_directory()) {
        return below.display().to_string();
    }
    let home = session.environment().home();
    match home.and_then(|home| path.strip_prefix(home).map(Path::to_owned).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}
