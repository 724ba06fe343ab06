//! The MCP servers: which there are, and what is known of them. None is started.

use convoke::Runtime;
use convoke::mcp::client::{ServerStatus, Transport};
use serde_json::json;

use super::super::mcp::{age, setback_json, setback_line};
use super::{Check, programs};
use crate::session::Session;
use crate::view::amounts;

const NAME: &str = "mcp servers";

/// What there is to say about the servers, and about those of the project that are not used.
pub(super) fn check(runtime: &Runtime, session: &Session<'_>) -> Check {
    let now = runtime.context().clock().now();
    let statuses = runtime.mcp().map(|servers| servers.servers().status()).unwrap_or_default();
    let count = amounts::count(statuses.len() as u64, "server");
    let line = |status: &ServerStatus| {
        let known = match (&status.setback, status.asked) {
            _ if !status.enabled => "off".to_owned(),
            (Some(setback), _) => setback_line(setback, now, runtime),
            (None, Some(asked)) => {
                let tools = amounts::count(status.tools as u64, "tool");
                format!("{tools}, asked {}", age(asked, now))
            }
            (None, None) => "not asked yet".to_owned(),
        };
        format!("{}: {known}", status.name)
    };
    let used = || statuses.iter().filter(|status| status.enabled);
    let setbacks = || used().filter_map(|status| status.setback.as_ref());
    let failed = setbacks().any(|setback| !setback.wants_login);
    let wants_login = setbacks().any(|setback| setback.wants_login);
    let mut problems: Vec<String> =
        runtime.mcp().into_iter().flat_map(|servers| servers.warnings()).collect();
    let is_told = |name: &str| used().any(|status| status.name == name && status.setback.is_some());
    problems.extend(missing(is_told, runtime, session));
    let untrusted = session.untrusted_servers();
    if let Some(file) = &untrusted {
        problems.push(format!("{} is not used: this project is not trusted", file.display()));
    }
    let message = if statuses.is_empty() { "none".to_owned() } else { count };
    let check = if failed {
        Check::fail(NAME, message)
    } else if problems.is_empty() && !wants_login {
        Check::ok(NAME, message)
    } else {
        Check::warn(NAME, message)
    };
    let check = statuses.iter().map(line).chain(problems).fold(check, Check::note);
    let check = match untrusted.and_then(|_| session.how_to_trust()) {
        Some(how) => check.hint(how),
        None => check,
    };
    if statuses.is_empty() {
        return check;
    }
    let details = statuses.iter().map(|status| {
        json!({
            "name": status.name,
            "enabled": status.enabled,
            "tools": status.asked.map(|_| status.tools),
            "askedAt": status.asked,
            "setback": setback_json(status, runtime),
        })
    });
    check.hint("`convoke mcp test` starts them all").details(details.collect())
}

/// Says which programs are not there, of servers of which it was not told yet that they do not work.
fn missing(
    is_told: impl Fn(&str) -> bool,
    runtime: &Runtime,
    session: &Session<'_>,
) -> Vec<String> {
    let listed = runtime.mcp().into_iter().flat_map(|servers| servers.listed());
    let listed =
        listed.filter(|listed| listed.config.enabled && !is_told(listed.config.name.as_str()));
    let missing = listed.filter_map(|listed| match &listed.config.transport {
        Transport::Program { command, cwd, .. } => {
            let problem = programs::problem(command, cwd.as_deref(), session)?;
            Some(format!("{}: {problem}", listed.config.name))
        }
        Transport::Http { .. } => None,
    });
    missing.collect()
}
