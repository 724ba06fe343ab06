//! What to do about a server that does not work.

use convoke::mcp::client::Transport;
use convoke::{ListedServer, Programs, Runtime};
use convoke_core::{ErrorKind, ToolError};

use super::super::doctor::program_problem;
use crate::failure::Failure;
use crate::session::Session;

/// Says that a server does not work, why, and what may help.
pub(super) fn failed(
    listed: &ListedServer,
    error: &ToolError,
    runtime: &Runtime,
    session: &Session<'_>,
) -> Failure {
    let failure = Failure::failed(runtime.secrets().hide(&error.message));
    advice(listed, error, runtime, session).into_iter().fold(failure, Failure::hint)
}

/// Returns what may help, the likeliest first.
pub(super) fn advice(
    listed: &ListedServer,
    error: &ToolError,
    runtime: &Runtime,
    session: &Session<'_>,
) -> Vec<String> {
    let name = &listed.config.name;
    if !listed.config.enabled {
        return vec![format!("`convoke mcp enable {name}` switches it on")];
    }
    let mut hints = Vec::new();
    match &listed.config.transport {
        Transport::Http { headers, .. } => {
            if error.kind == ErrorKind::Permission {
                let command = format!("convoke mcp login {name}");
                if !error.message.contains(&command) {
                    hints.push(format!("`{command}` signs you in"));
                }
                if !headers.is_empty() {
                    hints.push("or one of its `headers` is wrong".to_owned());
                }
            }
        }
        Transport::Program { command, cwd, .. } => {
            if let Some(problem) = program_problem(command, cwd.as_deref(), session) {
                hints.push(if command.contains('/') {
                    problem
                } else {
                    format!("is `{command}` installed, and in a directory of PATH?")
                });
            } else if listed.confined {
                hints.extend(confined(runtime));
            }
        }
    }
    // Who is not waited for may have had more time to start.
    if error.kind == ErrorKind::Timeout {
        hints.push(format!("`convoke mcp test {name} --timeout 2m` waits longer for it"));
    } else if error.message.contains("in time") {
        hints.push(format!("`startTimeout: 2m` gives `{name}` more time to start"));
    }
    hints
}

/// Servers that what is worked in has a say in are programs like any other, and may do no more.
fn confined(runtime: &Runtime) -> Option<String> {
    Some(match runtime.programs() {
        Programs::Confined(..) => {
            "it runs confined: sandbox.network and sandbox.hosts say whom it may talk to, sandbox.read and \
             sandbox.write which files it may use"
                .to_owned()
        }
        Programs::NotAllowed => {
            "it runs as programs do, which may not run here: policy.kinds.execute".to_owned()
        }
        Programs::Asked(_) | Programs::Unlimited(..) | Programs::Refused(_) => {
            "it runs confined only, which cannot be done here: `convoke doctor` says why, and sandbox.mode: off \
             lets it run with all your rights"
                .to_owned()
        }
        _ => return None,
    })
}
