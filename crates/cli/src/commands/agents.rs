//! `convoke agents`: the agents that runs can call, their files, and running one by itself.

mod check;
mod effective;
mod list;
mod new;
mod note;
pub(super) mod run;
mod show;

use std::path::Path;
use std::sync::Arc;

use clap::Subcommand;
use convoke::agent::AgentRights;
use convoke::agent::files::{AgentOrigin, AgentSource};
use convoke::agent::registry::Registered;
use convoke::{AgentCallError, AgentOff, KnownAgent, Origin, OriginAgent, Runtime};
use convoke_core::{Event, ExitCode, RunId};

use super::runs::{refuse_never_started, refuse_served};
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

/// Finds an agent that can be run, by its name.
pub(super) fn find(name: &str, runtime: &Runtime) -> Result<Arc<Registered>, Failure> {
    runtime.find_agent(name).map_err(|error| not_found(&error))
}

/// Finds an agent by its name, also one that is switched off.
fn known(name: &str, runtime: &Runtime, session: &Session<'_>) -> Result<KnownAgent, Failure> {
    runtime.known_agent(name).map_err(|error| explained(&error, runtime, session))
}

/// Says why an agent cannot be had here: it may be one of a project that is not trusted, or its file is wrong.
pub(super) fn explained(
    error: &AgentCallError,
    runtime: &Runtime,
    session: &Session<'_>,
) -> Failure {
    let AgentCallError::Unknown { name, .. } = error else { return not_found(error) };
    if let Some(path) = session.untrusted_agent(name) {
        let place = shown(&path, session);
        let message =
            format!("the agent `{name}` is the project's ({place}), which is not trusted");
        return Failure::usage(message).any_hint(session.how_to_trust());
    }
    if let Some(path) = wrong_file(name, runtime) {
        let place = shown(path, session);
        return Failure::usage(format!("there is no agent `{name}`: its file {place} is wrong"))
            .hint(format!("`convoke agents check {name}` says what is wrong with it"));
    }
    not_found(error)
}

/// Finds a file that is wrong, by the name of its agent or by its own.
fn wrong_file<'r>(name: &str, runtime: &'r Runtime) -> Option<&'r Path> {
    let mut drafts = runtime.agent_files().drafts.iter();
    let found = drafts.find(|draft| {
        let agent = draft.definition.as_ref().map(|agent| agent.name.as_str());
        let stem = draft.source.path.file_stem().and_then(|stem| stem.to_str());
        agent == Some(name) || stem == Some(name)
    });
    found.map(|draft| draft.source.path.as_path())
}

fn not_found(error: &AgentCallError) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error {
        AgentCallError::SwitchedOff { off: off @ AgentOff::Unasked(_), .. } => {
            failure.hint(format!("`--set {}=true` switches it on for once", off.key()))
        }
        AgentCallError::SwitchedOff { off, .. } => {
            let key = off.key();
            failure.hint(format!("`convoke config explain {key}` says which file and line set it"))
        }
        AgentCallError::Unknown { .. } => failure.hint("`convoke agents list` shows them all"),
        AgentCallError::NotCallable { caller, .. } => {
            let agent = caller.rsplit('/').next().unwrap_or(caller);
            failure.hint(format!("`convoke agents show {agent}` says whom it may call"))
        }
        _ => failure,
    }
}

/// Returns the names of the agents that the main agent can call.
pub(super) fn offered(runtime: &Runtime) -> Vec<String> {
    if !runtime.calls_agents() {
        return Vec::new();
    }
    runtime.team().offered().iter().map(|agent| agent.name.clone()).collect()
}

/// Returns the names of the other agents there are, each with why the main agent cannot call it.
pub(super) fn not_offered(runtime: &Runtime) -> Vec<(String, String)> {
    let others = runtime.known_agents().into_iter().filter_map(|known| {
        let name = known.agent.name.clone();
        let why = match &known.off {
            Some(off) => format!("it is switched off: {off}"),
            None => runtime.not_offered(&name)?.to_string(),
        };
        Some((name, why))
    });
    others.collect()
}

/// Says no to a conversation with the main agent that would go on where an agent worked by itself, or nobody did.
pub(super) fn refuse_to_talk(run: &RunId, events: &[Event]) -> Result<(), Failure> {
    refuse_served(run, events)?;
    refuse_never_started(run, events)?;
    match Origin::of(events).and_then(|origin| origin.agent) {
        None => Ok(()),
        Some(agent) => {
            let message = format!("that run is the agent `{}` at work by itself", agent.name);
            Err(Failure::usage(message)
                .hint(format!("`convoke runs resume {run} \"…\"` gives it more to do")))
        }
    }
}

/// Says it where the definition of an agent gives other rights than when a run of it began.
pub(super) fn changed(before: &OriginAgent, now: &Registered) -> Option<String> {
    let then = before.rights.as_ref()?;
    (AgentRights::of(now.definition()) != *then).then(|| {
        format!(
            "what the agent `{}` may do was changed since the run began; it may do what both allow",
            before.name
        )
    })
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
