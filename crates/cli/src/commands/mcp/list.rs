//! `convoke mcp list`: a line a server.

use std::time::Duration;

use clap::Args;
use convoke::config::{Timeout, words_without_keys};
use convoke::mcp::client::{ServerConfig, ServerStatus, Setback, Transport};
use convoke::{ListedServer, McpServers, Runtime};
use convoke_core::{ErrorKind, ExitCode, Millis, Timestamp};
use serde_json::{Value, json};

use super::super::run::watch::threads;
use super::advice::advice;
use super::{Looked, end, look_at, reached, runtime, switched_off_elsewhere, whose};
use crate::duration;
use crate::failure::{self, Failure};
use crate::output::{Output, Style, Table, spelled};
use crate::session::Session;
use crate::view::amounts;
use crate::view::brief::one_line;

const AFTER_HELP: &str = "\
Servers come from tools.mcpServers of your file and of the project's, from the files that tools.mcpFiles names, \
and from .mcp.json of the project; the project's are there if the project is trusted. Nothing is started: what \
is known is from the last time each was asked; one that could not be started the last time says why, and \
`convoke mcp get` says all of it. --check starts all of them.

The columns are: the name; whose it is; what is known of it; how it is reached.

Examples:
  convoke mcp list
  convoke mcp list --check
  convoke mcp list --json | jq -r '.[].name'

Exit codes:
  0 done, 1 with --check, if a server does not work or is left out";

/// Why a server is left out that the configuration has.
pub(super) const LEFT_OUT: &str = "it asks for a variable that it does not get";

/// List the servers whose tools are used
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct List {
    /// Start every server, and say which work
    #[arg(long)]
    check: bool,
    /// How long a server may take, with --check
    #[arg(long, value_name = "DURATION", default_value = "30s", requires = "check",
          value_parser = duration::parse)]
    timeout: Timeout,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    /// Makes the command that starts every server.
    pub(super) const fn checking(timeout: Timeout, json: bool) -> Self {
        Self { check: true, timeout, json }
    }

    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let runtime = runtime(session, output)?;
        Session::warn_of_places(|_| true, &runtime, output);
        let left_out: Vec<&str> = runtime.servers_left_out().collect();
        let Some(servers) = runtime.mcp() else {
            nothing(&left_out, self.json, output);
            self.tell_switches(&runtime, output);
            return Ok(self.code(&[], &left_out));
        };
        let looked = if self.check { check(servers, self.timeout.duration())? } else { Vec::new() };
        let statuses = servers.servers().status();
        let now = runtime.context().clock().now();
        let rows = servers.listed().iter().filter_map(|listed| {
            let name = &listed.config.name;
            let status = statuses.iter().find(|status| status.name == *name)?;
            Some(Row { listed, status, looked: looked.iter().find(|looked| looked.name == *name) })
        });
        let rows: Vec<Row<'_>> = rows.collect();
        if self.json {
            let rows = rows.iter().map(|row| row.json(&runtime));
            output
                .json(&rows.chain(left_out.iter().copied().map(left_out_json)).collect::<Vec<_>>());
        } else {
            let mut table = titled();
            for row in &rows {
                row.add(&mut table, now, &runtime);
            }
            add_left_out(&left_out, &mut table);
            table.print(&output.out);
            for row in &rows {
                row.advise(&runtime, session, output);
            }
        }
        self.tell_switches(&runtime, output);
        Ok(self.code(&looked, &left_out))
    }

    /// Whoever wants all of them to work wants those that are left out to work as well.
    fn code(&self, looked: &[Looked], left_out: &[&str]) -> ExitCode {
        let fails = looked.iter().any(|looked| looked.result.is_err()) || !left_out.is_empty();
        if self.check && fails { ExitCode::Failed } else { ExitCode::Done }
    }

    /// Says what is switched off and does not stand in the list.
    fn tell_switches(&self, runtime: &Runtime, output: &mut Output) {
        if let Some(told) = switched_off_elsewhere(runtime).filter(|_| !self.json) {
            failure::hint(output, &told);
        }
    }
}

fn titled() -> Table {
    Table::default().cut().titled(["server", "source", "state", "reached"])
}

/// Says of servers that there are, and why they are not used. A warning names the variable.
fn add_left_out(names: &[&str], table: &mut Table) {
    for name in names {
        let state = format!("left out: {LEFT_OUT}");
        table.row([
            (spelled(name), Some(Style::Name)),
            (String::new(), None),
            (state, Some(Style::Bad)),
            (String::new(), None),
        ]);
    }
}

/// Has the keys that every other server has: all that is known is its name.
fn left_out_json(name: &str) -> Value {
    json!({
        "name": name,
        "source": null,
        "path": null,
        "reached": null,
        "enabled": false,
        "state": "left_out",
        "reason": LEFT_OUT,
        "durationMs": null,
        "revision": null,
        "software": null,
        "askedAt": null,
        "tools": null,
        "resources": null,
        "prompts": null,
        "unusable": [],
        "setback": null,
    })
}

/// Lists what there is where no server can be used.
fn nothing(left_out: &[&str], json: bool, output: &mut Output) {
    if json {
        output.json(&left_out.iter().copied().map(left_out_json).collect::<Vec<_>>());
    } else if !left_out.is_empty() {
        let mut table = titled();
        add_left_out(left_out, &mut table);
        table.print(&output.out);
    } else if !output.is_quiet() {
        output.err.line("there are no MCP servers; `convoke mcp add` adds one");
    }
}

/// Starts all servers that are used, and ends them again.
fn check(servers: &McpServers, patience: Duration) -> Result<Vec<Looked>, Failure> {
    let used = servers.listed().iter().filter(|listed| listed.config.enabled);
    let names = used.map(|listed| listed.config.name.clone()).collect();
    let threads = threads()?;
    let looked = threads.block_on(async {
        let looked = look_at(names, servers, patience).await;
        end(servers).await;
        looked
    });
    threads.shutdown_timeout(Duration::from_millis(200));
    looked
}

/// A server, and what is known of it.
struct Row<'a> {
    listed: &'a ListedServer,
    status: &'a ServerStatus,
    looked: Option<&'a Looked>,
}

impl Row<'_> {
    fn add(&self, table: &mut Table, now: Timestamp, runtime: &Runtime) {
        let (state, style) = self.state(now, runtime);
        let how = reached(&self.listed.config, runtime);
        table.row([
            (self.listed.config.name.clone(), Some(Style::Name)),
            (whose(self.listed).to_owned(), None),
            (spelled(&state), style),
            (spelled(&how), None),
        ]);
    }

    fn state(&self, now: Timestamp, runtime: &Runtime) -> (String, Option<Style>) {
        const LONGEST: usize = 60;
        let tools = amounts::count(self.status.tools as u64, "tool");
        match self.looked.map(|looked| (looked, &looked.result)) {
            Some((looked, Ok(_))) => {
                (format!("ready in {} ms, {tools}", looked.time.as_millis()), Some(Style::Good))
            }
            Some((_, Err(error))) if error.kind == ErrorKind::Permission => {
                ("wants a login".to_owned(), Some(Style::Bad))
            }
            Some((_, Err(_))) => ("failed".to_owned(), Some(Style::Bad)),
            None if !self.status.enabled => ("off".to_owned(), Some(Style::Dim)),
            None if self.status.setback.is_some() => {
                let setback = self.status.setback.as_ref();
                let line = setback.map(|setback| setback_line(setback, now, runtime));
                // All of it would push the last column out of line.
                (one_line(&line.unwrap_or_default(), LONGEST), Some(Style::Bad))
            }
            None => match (&self.status.revision, self.status.asked) {
                (Some(revision), Some(asked)) => {
                    let age = age(asked, now);
                    (format!("{tools}, revision {revision}, asked {age}"), None)
                }
                _ => ("not asked yet".to_owned(), Some(Style::Dim)),
            },
        }
    }

    /// Says why a server does not work, and what to do about it; of one that works, what else there is to know.
    fn advise(&self, runtime: &Runtime, session: &Session<'_>, output: &mut Output) {
        let error = match self.looked.map(|looked| &looked.result) {
            Some(Err(error)) => error,
            Some(Ok(status)) => {
                for warning in &status.warnings {
                    failure::warning(output, &runtime.secrets().hide(warning));
                }
                return;
            }
            None => return,
        };
        failure::warning(output, &runtime.secrets().hide(&error.message));
        for hint in advice(self.listed, error, runtime, session) {
            failure::hint(output, &hint);
        }
    }

    fn json(&self, runtime: &Runtime) -> Value {
        let Self { listed, status, looked } = self;
        let state = match looked.map(|looked| &looked.result) {
            Some(Ok(_)) => "ready",
            Some(Err(_)) => "failed",
            None => status.state.as_str(),
        };
        let reason = looked.and_then(|looked| looked.result.as_ref().err());
        let reason = reason.map(|error| runtime.secrets().hide(&error.message).into_owned());
        json!({
            "name": status.name,
            "source": whose(listed),
            "path": listed.file.as_ref().map(|file| file.display().to_string()),
            "reached": transport(&listed.config, runtime),
            "enabled": status.enabled,
            "state": state,
            "reason": reason,
            "durationMs": looked.map(|looked| Millis::new(looked.time)),
            "revision": status.revision,
            "software": status.software,
            "askedAt": status.asked,
            "tools": status.asked.map(|_| status.tools),
            "resources": status.asked.map(|_| status.resources),
            "prompts": status.asked.map(|_| status.prompts),
            "unusable": status.unusable,
            "setback": setback_json(status, runtime),
        })
    }
}

/// Says how the last try to start a server failed, in a line.
pub(in crate::commands) fn setback_line(
    setback: &Setback,
    now: Timestamp,
    runtime: &Runtime,
) -> String {
    const LONGEST: usize = 100;
    let age = age(setback.at, now);
    if setback.wants_login {
        return format!("wants a login, asked {age}");
    }
    let why = runtime.secrets().hide(&setback.why);
    format!("failed {age}: {}", one_line(&why, LONGEST))
}

/// Returns the same for programs.
pub(in crate::commands) fn setback_json(status: &ServerStatus, runtime: &Runtime) -> Value {
    status.setback.as_ref().map_or(Value::Null, |setback| {
        json!({
            "at": setback.at,
            "why": runtime.secrets().hide(&setback.why),
            "wantsLogin": setback.wants_login,
        })
    })
}

/// Returns how a server is reached for programs. Of variables and headers only the names are told.
pub(super) fn transport(config: &ServerConfig, runtime: &Runtime) -> Value {
    let hide = |text: &String| runtime.secrets().hide(text).into_owned();
    match &config.transport {
        Transport::Program { command, args, env, cwd } => {
            let args = words_without_keys(args.iter().map(String::as_str));
            json!({
                "command": hide(command),
                "args": args.iter().map(hide).collect::<Vec<_>>(),
                "env": env.keys().collect::<Vec<_>>(),
                "cwd": cwd.as_ref().map(|path| path.display().to_string()),
            })
        }
        Transport::Http { headers, .. } => json!({
            "url": reached(config, runtime),
            "headers": headers.keys().collect::<Vec<_>>(),
        }),
    }
}

/// Says how long ago something was, roughly.
pub(in crate::commands) fn age(then: Timestamp, now: Timestamp) -> String {
    const UNITS: [(i64, &str); 3] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m")];
    let millis = now.as_millis() - then.as_millis();
    let fits = UNITS.iter().find(|(each, _)| millis >= *each);
    fits.map_or("just now".to_owned(), |(each, unit)| format!("{}{unit} ago", millis / each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_rough() {
        let age = |millis| age(Timestamp::from_millis(0), Timestamp::from_millis(millis));
        assert_eq!([age(-5), age(59_999), age(60_000)], ["just now", "just now", "1m ago"]);
        assert_eq!([age(7_300_000), age(200_000_000)], ["2h ago", "2d ago"]);
    }
}
