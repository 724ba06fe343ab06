//! `convoke mcp get`: one server, as it is configured and as far as it is known. It is not started.

use clap::Args;
use convoke::mcp::client::{ServerConfig, ServerStatus, Transport};
use convoke::{ListedServer, Runtime};
use convoke_core::{ExitCode, Timestamp};
use serde_json::{Value, json};

use super::list::{age, setback_json, setback_line, transport};
use super::{find, reached, runtime_for, status, whose};
use crate::duration;
use crate::failure::Failure;
use crate::output::{Output, Style, Table};
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
Nothing is started: `convoke mcp test` does that. Values of variables and headers are not shown.

Examples:
  convoke mcp get files
  convoke mcp get files --json | jq .reached";

/// Show how a server is configured, and what is known of it
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Get {
    /// The server
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Get {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let runtime = runtime_for(&self.name, session, output)?;
        let (servers, listed) = find(&self.name, &runtime)?;
        let known = status(servers, &self.name);
        if self.json {
            output.json(&report(listed, known.as_ref(), &runtime));
            return Ok(ExitCode::Done);
        }
        let out = &output.out;
        let how = reached(&listed.config, &runtime);
        let name = out.paint(Style::Name, &self.name);
        out.line(format_args!("{name}  {}  {}", whose(listed), out.printable(&how)));
        let mut facts = configured(listed);
        let now = runtime.context().clock().now();
        facts.extend(known.iter().flat_map(|status| known_of(status, now, &runtime)));
        Table::facts(facts, out);
        Ok(ExitCode::Done)
    }
}

/// Says what was chosen for it, and leaves out what is as usual.
fn configured(listed: &ListedServer) -> Vec<(&'static str, String)> {
    let ListedServer { config, file, .. } = listed;
    let usual = ServerConfig::http("", "");
    let mut facts = Vec::new();
    facts.extend(file.as_ref().map(|file| ("file", file.display().to_string())));
    let names = match &config.transport {
        Transport::Program { env, .. } => ("variables", env),
        Transport::Http { headers, .. } => ("headers", headers),
    };
    let list =
        |names: Vec<&String>| names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    if !names.1.is_empty() {
        facts.push((names.0, list(names.1.keys().collect())));
    }
    if let Transport::Program { cwd: Some(cwd), .. } = &config.transport {
        facts.push(("runs in", cwd.display().to_string()));
    }
    for (what, patterns) in [("include", &config.include), ("exclude", &config.exclude)] {
        if !patterns.is_empty() {
            facts.push((what, list(patterns.iter().collect())));
        }
    }
    if config.timeout != usual.timeout {
        facts.push(("timeout", duration::show(config.timeout)));
    }
    if config.start_timeout != usual.start_timeout {
        facts.push(("starts within", duration::show(config.start_timeout)));
    }
    facts
}

/// Says what is known of it from the last time it was asked.
fn known_of(
    status: &ServerStatus,
    now: Timestamp,
    runtime: &Runtime,
) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if !status.enabled {
        facts.push(("state", "off".to_owned()));
    }
    facts.extend(
        status.setback.as_ref().map(|setback| ("last try", setback_line(setback, now, runtime))),
    );
    let Some(asked) = status.asked else {
        facts.push(("offers", "not asked yet".to_owned()));
        return facts;
    };
    facts.extend(status.revision.clone().map(|revision| ("revision", revision)));
    facts.extend(status.software.clone().map(|software| ("software", software)));
    let tools = amounts::count(status.tools as u64, "tool");
    facts.push(("offers", format!("{tools}, asked {}", age(asked, now))));
    facts
}

fn report(listed: &ListedServer, status: Option<&ServerStatus>, runtime: &Runtime) -> Value {
    let config = &listed.config;
    json!({
        "name": config.name,
        "source": whose(listed),
        "path": listed.file.as_ref().map(|file| file.display().to_string()),
        "reached": transport(config, runtime),
        "enabled": config.enabled,
        "include": config.include,
        "exclude": config.exclude,
        "revision": status.and_then(|status| status.revision.as_ref()),
        "software": status.and_then(|status| status.software.as_ref()),
        "askedAt": status.and_then(|status| status.asked),
        "tools": status.and_then(|status| status.asked.map(|_| status.tools)),
        "setback": status.map_or(Value::Null, |status| setback_json(status, runtime)),
    })
}
