//! `convoke tools`: the tools there are, and calling one.

pub(super) mod call;
mod list;
mod servers;
pub(super) mod show;
mod stats;

use clap::Subcommand;
use clap::builder::TypedValueParser;
use convoke::Runtime;
use convoke_core::nearest::{did_you_mean, nearest};
use convoke_core::{Category, ExitCode, Kind, Permission, ToolSpec};
use serde::Serialize;

pub(super) use self::servers::known_name;
use crate::cli::one_of;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// What can be done with tools.
#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    List(list::List),
    Show(show::Show),
    Call(call::Call),
    Stats(stats::Stats),
}

impl Tools {
    /// Runs the command.
    pub(super) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        match self {
            Self::List(command) => command.run(session, output),
            Self::Show(command) => command.run(session, output),
            Self::Call(command) => command.run(session, output),
            Self::Stats(command) => command.run(session, output),
        }
    }
}

/// A tool as it is listed for programs: its spec, and what holds for it here.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    spec: &'a ToolSpec,
    /// Whether models are offered it.
    offered: bool,
    /// Whether calls of it are allowed, asked about or denied.
    permission: Permission,
    /// The MCP server that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
}

impl<'a> Listed<'a> {
    fn new(spec: &'a ToolSpec, runtime: &Runtime) -> Self {
        Self {
            spec,
            offered: runtime.offered().get(&spec.name).is_some(),
            permission: runtime.permission_of(spec),
            server: servers::server_of(spec, runtime),
        }
    }
}

/// Returns what the configuration says about a kind of call, rules aside.
fn permission(runtime: &Runtime, kind: Kind) -> Permission {
    runtime.permissions().get(&kind).copied().unwrap_or(Permission::Deny)
}

/// The error for a name that no tool has.
fn unknown_tool(name: &str, runtime: &Runtime) -> Failure {
    let tools = runtime.registry().list();
    let close = nearest(name, tools.iter().map(|tool| tool.spec().name.as_str()));
    Failure::usage(format!("there is no tool `{name}`{}", did_you_mean(&close)))
        .hint("`convoke tools list` shows them all")
}

/// Reads a kind on the command line.
fn kind_parser() -> impl TypedValueParser<Value = Kind> {
    one_of(Kind::ALL.iter().map(|kind| kind.as_str()))
}

/// Reads a category on the command line.
fn category_parser() -> impl TypedValueParser<Value = Category> {
    one_of(Category::ALL.iter().map(|category| category.as_str()))
}
