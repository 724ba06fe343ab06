//! `convoke mcp test`: one server from its start to what it offers, step by step.

use std::time::Duration;

use clap::Args;
use convoke::agent::Surroundings;
use convoke::config::Timeout;
use convoke::mcp::client::{ServerStatus, Trust};
use convoke::{ListedServer, McpServers, Runtime};
use convoke_core::{ExitCode, Millis};
use serde_json::json;

use super::super::run::watch::threads;
use super::advice::failed;
use super::list::{List, setback_line, transport};
use super::{Looked, end, find, look_at, reached, runtime_for, status, whose};
use crate::duration;
use crate::failure::Failure;
use crate::output::{Output, Style, Table};
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
Starts the server, asks it for everything it offers, and ends it. Without a name, all servers are tried, as \
`convoke mcp list --check` does.

Examples:
  convoke mcp test files
  convoke mcp test files --json
  convoke mcp test --timeout 5s

Exit codes:
  0 it works, 1 it does not, 2 there is no such server, 7 it is left out, or configuration wrong";

/// Start a server, and show what it says
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Test {
    /// The server; without it, all of them
    name: Option<String>,
    /// How long it may take
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    timeout: Timeout,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Test {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let Some(name) = &self.name else {
            return List::checking(self.timeout, self.json).run(session, output);
        };
        let runtime = runtime_for(name, session, output)?;
        let (servers, listed) = find(name, &runtime)?;
        if !self.json {
            let out = &output.out;
            let how = reached(&listed.config, &runtime);
            let (name, whose) = (out.paint(Style::Name, name), whose(listed));
            out.line(format_args!("{name}  {whose}  {}", out.printable(&how)));
            out.flush();
        }
        let before = status(servers, name).and_then(|status| status.setback);
        let looked = look(name, servers, self.timeout.duration())?;
        if self.json {
            output.json(&report(listed, &looked, &runtime));
            return Ok(if looked.result.is_ok() { ExitCode::Done } else { ExitCode::Failed });
        }
        match &looked.result {
            Ok(status) => {
                let now = runtime.context().clock().now();
                let before = before.map(|setback| setback_line(&setback, now, &runtime));
                let mut facts = facts(listed, status, looked.time);
                facts.extend(before.map(|line| ("before", line)));
                Table::facts(facts, &output.out);
                Ok(ExitCode::Done)
            }
            Err(error) => Err(failed(listed, error, &runtime, session)),
        }
    }
}

/// Starts one server, looks at it, and ends it.
pub(super) fn look(
    name: &str,
    servers: &McpServers,
    patience: Duration,
) -> Result<Looked, Failure> {
    let threads = threads()?;
    let looked = threads.block_on(async {
        let looked = look_at(vec![name.to_owned()], servers, patience).await;
        end(servers).await;
        looked
    });
    threads.shutdown_timeout(Duration::from_millis(200));
    let nothing = || Failure::failed(format!("nothing came of the MCP server `{name}`"));
    looked?.pop().ok_or_else(nothing)
}

fn facts(
    listed: &ListedServer,
    status: &ServerStatus,
    time: Duration,
) -> Vec<(&'static str, String)> {
    let mut facts = vec![("ready", format!("in {} ms", time.as_millis()))];
    facts.extend(status.revision.clone().map(|revision| ("revision", revision)));
    facts.extend(status.software.clone().map(|software| ("software", software)));
    facts.extend(status.instructions.clone().map(|text| ("instructions", text)));
    let (told, said) = (Surroundings::MAX_SAYING, status.instructions_bytes);
    if said > told && listed.config.trust == Trust::Annotations {
        let words = format!("models get the first {told} of these {said} bytes at the beginning");
        facts.push(("told", words));
    }
    facts.push(("believed", believed(listed.config.trust).to_owned()));
    facts.push(("offers", offers(status)));
    let unusable = status.unusable.iter();
    facts.extend(unusable.map(|(tool, why)| ("unusable", format!("{tool}: {why}"))));
    facts.extend(status.warnings.iter().map(|warning| ("warning", warning.clone())));
    facts
}

const fn believed(trust: Trust) -> &'static str {
    match trust {
        Trust::Nothing => "nothing of what it says about its tools",
        Trust::Annotations => "what it says about its tools",
    }
}

/// Says how much a server offers.
pub(super) fn offers(status: &ServerStatus) -> String {
    let counts =
        [(status.tools, "tool"), (status.resources, "resource"), (status.prompts, "prompt")];
    let counts = counts.map(|(count, what)| amounts::count(count as u64, what));
    match status.unwanted {
        0 => counts.join(", "),
        unwanted => {
            let tools = amounts::count(unwanted as u64, "tool");
            format!("{}; {tools} more, left out by include and exclude", counts.join(", "))
        }
    }
}

fn report(listed: &ListedServer, looked: &Looked, runtime: &Runtime) -> serde_json::Value {
    let status = looked.result.as_ref().ok();
    let error = looked.result.as_ref().err();
    json!({
        "name": looked.name,
        "source": whose(listed),
        "reached": transport(&listed.config, runtime),
        "ok": status.is_some(),
        "durationMs": Millis::new(looked.time),
        "error": error.map(|error| json!({
            "kind": error.kind,
            "message": runtime.secrets().hide(&error.message),
        })),
        "revision": status.and_then(|status| status.revision.as_ref()),
        "software": status.and_then(|status| status.software.as_ref()),
        "instructions": status.and_then(|status| status.instructions.as_ref()),
        "tools": status.map(|status| status.tools),
        "resources": status.map(|status| status.resources),
        "prompts": status.map(|status| status.prompts),
        "unusable": status.map(|status| &status.unusable),
        "unwanted": status.map(|status| status.unwanted),
        "warnings": status.map(|status| &status.warnings),
    })
}
