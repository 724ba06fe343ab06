//! `convoke mcp`: the servers whose tools are used, and tools of ours for others.

mod add;
mod advice;
mod browser;
mod edit;
mod get;
mod import;
mod list;
mod login;
mod look;
mod offers;
mod place;
mod remove;
mod serve;
mod switch;
mod test;
mod tools;

use std::sync::Arc;

use clap::Subcommand;
use convoke::config::{Author, address_without_keys, words_without_keys};
use convoke::mcp::client::{ServerConfig, ServerStatus, Transport};
use convoke::{ListedServer, McpServers, Runtime};
use convoke_core::ExitCode;
use convoke_core::nearest::{did_you_mean, nearest};

use crate::failure::Failure;
use crate::output::{Output, word};
use crate::session::Session;

pub(super) use self::list::{age, setback_json, setback_line};
pub(super) use self::look::{Looked, end, end_all, look_at, unless_stopped};

/// What can be done with MCP servers.
#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    List(list::List),
    Test(test::Test),
    Tools(tools::Tools),
    Prompts(offers::Prompts),
    Resources(offers::Resources),
    Get(get::Get),
    Add(Box<add::Add>),
    AddJson(add::AddJson),
    Enable(switch::Enable),
    Disable(switch::Disable),
    Remove(remove::Remove),
    Import(import::Import),
    Login(login::Login),
    Logout(login::Logout),
    Serve(Box<serve::Serve>),
}

impl Mcp {
    /// Runs the command.
    pub(super) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        match self {
            Self::List(command) => command.run(session, output),
            Self::Test(command) => command.run(session, output),
            Self::Tools(command) => command.run(session, output),
            Self::Prompts(command) => command.run(session, output),
            Self::Resources(command) => command.run(session, output),
            Self::Get(command) => command.run(session, output),
            Self::Add(command) => command.run(session, output),
            Self::AddJson(command) => command.run(session, output),
            Self::Enable(command) => command.run(session, output),
            Self::Disable(command) => command.run(session, output),
            Self::Remove(command) => command.run(session, output),
            Self::Import(command) => command.run(session, output),
            Self::Login(command) => command.run(session, output),
            Self::Logout(command) => command.run(session, output),
            Self::Serve(command) => command.run(session, output),
        }
    }
}

/// Makes a runtime, and says what there is to know about its servers in common.
fn runtime(session: &Session<'_>, output: &mut Output) -> Result<Runtime, Failure> {
    let runtime = session.runtime(session.load(output)?.config)?;
    session.warn_of_servers_in_common(&runtime, output);
    Ok(runtime)
}

/// Makes a runtime to look at one server, and says what there is to know about that.
fn runtime_for(name: &str, session: &Session<'_>, output: &mut Output) -> Result<Runtime, Failure> {
    let runtime = runtime(session, output)?;
    Session::warn_of_places(|one| one == name, &runtime, output);
    Ok(runtime)
}

/// Finds a server by its name.
fn find<'a>(
    name: &str,
    runtime: &'a Runtime,
) -> Result<(&'a Arc<McpServers>, &'a ListedServer), Failure> {
    let servers = runtime.mcp();
    let found = servers.and_then(|servers| {
        let listed = servers.listed().iter().find(|listed| listed.config.name == name)?;
        Some((servers, listed))
    });
    found.ok_or_else(|| {
        if runtime.is_server_left_out(name) {
            let why = list::LEFT_OUT;
            return Failure::configuration(format!("the MCP server `{name}` is left out: {why}"))
                .hint("the warning above says which, and what to do");
        }
        let names = servers.iter().flat_map(|servers| servers.listed());
        let close = nearest(name, names.map(|listed| listed.config.name.as_str()));
        Failure::usage(format!("there is no MCP server `{name}`{}", did_you_mean(&close)))
            .hint("`convoke mcp list` shows them all")
            .any_hint(
                switched_off_elsewhere(runtime)
                    .filter(|_| runtime.servers_switched_off_elsewhere().any(|off| off == name)),
            )
    })
}

/// Says what the user switched off and is not here.
fn switched_off_elsewhere(runtime: &Runtime) -> Option<String> {
    let names: Vec<String> =
        runtime.servers_switched_off_elsewhere().map(|name| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!(
            "your own file switches off what is not here: {names}; `convoke mcp enable NAME` takes a switch out"
        )
    })
}

/// Says whose a server is, in a word.
const fn whose(listed: &ListedServer) -> &'static str {
    match listed.author {
        Author::User => "user",
        Author::Project => "project",
    }
}

/// Says how a server is reached, without what may be secret.
pub(super) fn reached(config: &ServerConfig, runtime: &Runtime) -> String {
    let text = match &config.transport {
        Transport::Program { command, args, .. } => {
            let words = std::iter::once(command).chain(args).map(String::as_str);
            let words = words_without_keys(words);
            words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" ")
        }
        Transport::Http { url, .. } => address_without_keys(url),
    };
    runtime.secrets().hide(&text).into_owned()
}

/// Returns what is known of a server now.
fn status(servers: &McpServers, name: &str) -> Option<ServerStatus> {
    servers.servers().status().into_iter().find(|status| status.name == name)
}
