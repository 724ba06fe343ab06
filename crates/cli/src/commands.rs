//! The commands, one file each.

mod agents;
mod ask;
pub(crate) mod chat;
mod completions;
mod config;
mod demo;
mod doctor;
mod inquiry;
mod mcp;
mod models;
mod policy;
mod run;
mod runs;
mod sandbox;
mod tools;
mod workspace;

use clap::Subcommand;

use crate::cli::Global;
use crate::ended::Ended;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// A command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<run::Run>),
    Chat(Box<chat::Chat>),
    /// See, resume, fork and export runs
    #[command(subcommand, arg_required_else_help = true)]
    Runs(runs::Runs),
    Demo(demo::Demo),
    /// List models, and check that one answers
    #[command(subcommand, arg_required_else_help = true)]
    Models(models::Models),
    /// List, check, write and run agents
    #[command(subcommand, arg_required_else_help = true)]
    Agents(agents::Agents),
    /// List, describe and call tools
    #[command(subcommand, arg_required_else_help = true)]
    Tools(tools::Tools),
    /// List, test, add and serve MCP servers
    #[command(subcommand, arg_required_else_help = true)]
    Mcp(mcp::Mcp),
    /// Show, explain and check the configuration
    #[command(subcommand, arg_required_else_help = true)]
    Config(config::Config),
    /// Ask what is allowed, and which rule says so
    #[command(subcommand, arg_required_else_help = true)]
    Policy(policy::Policy),
    /// Try out how programs are confined
    #[command(subcommand, arg_required_else_help = true)]
    Sandbox(sandbox::Sandbox),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
}

/// Runs a command.
pub(crate) fn run(
    command: Command,
    global: &Global,
    environment: Environment,
    output: &mut Output,
) -> Result<Ended, Failure> {
    let session = || Session::open(global, environment);
    let code = match command {
        Command::Run(command) => command.run(&session()?, output),
        Command::Chat(command) => command.run(&session()?, output),
        Command::Runs(command) => command.run(&session()?, output),
        Command::Demo(command) => command.run(&session()?, output),
        Command::Models(command) => command.run(&session()?, output),
        Command::Agents(command) => command.run(&session()?, output),
        Command::Tools(command) => command.run(&session()?, output),
        Command::Mcp(command) => command.run(&session()?, output),
        Command::Config(command) => command.run(&session()?, output),
        Command::Policy(command) => command.run(&session()?, output),
        Command::Sandbox(command) => return command.run(&session()?, output),
        Command::Doctor(command) => Ok(command.run(&session()?, output)),
        Command::Completions(command) => Ok(command.run(output)),
    };
    code.map(Ended::from)
}
