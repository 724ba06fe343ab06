//! `convoke sandbox run`: one program, confined as an agent's programs are.

use clap::Args;
use convoke::Programs;
use convoke::config::SandboxMode;
use convoke::sandbox::{Backend, Confinement};
use convoke_core::Cause;
use convoke_tool::Program;
use serde_json::{Value, json};

use super::carry_out::{Done, NotStarted, Said, carry_out};
use super::changes::Changes;
use crate::ended::Ended;
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Without options the program gets what an agent's programs get, by the same configuration (`sandbox`, \
`tools.allowedPaths`, `tools.environment`). With the built-in one it reads everything but secrets and the \
state directory, writes below the working directory, in /tmp (or where TMPDIR says) and in /dev/shm, and talks \
to nobody. Its own TMPDIR is a fresh directory that is removed in the end. With Landlock, /tmp stays closed \
where something hidden lies in it, which is told.

It reads this command's input, and has no terminal. `convoke doctor` says what can be enforced on this \
machine; what cannot be is refused.

With --json nothing is passed on, and in the end an object is printed: backend, confinement (read, write, \
shared, hidden, network, limits), exitCode, reached (the limit it reached, if it failed and that is known: \
key, message), stdout, stderr, notices (what became of files that it changed and that run later).

Examples:
  convoke sandbox run -- sh -c 'cat ~/.ssh/id_ed25519'
  convoke sandbox run --network all -- curl -I https://example.org
  convoke sandbox run --allow-host '*.crates.io' -- cargo fetch
  convoke sandbox run --read . --write out --cpu-per-process 10m -- make
  systemd-run --user --scope -p Delegate=yes convoke sandbox run --memory 2GiB -- make

Exit codes:
  that of the program, 128 and the signal that ended it, 127 it is not there, 126 it cannot start,
  2 called wrongly, 3 it cannot be confined like that, 7 configuration wrong, 130 interrupted,
  143 terminated";

/// Run a program as confined as an agent's programs are
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Run {
    #[command(flatten)]
    changes: Changes,
    /// Print what it said, how it ended and how it was confined as JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Run {
    /// Runs the command.
    pub(super) fn run(self, session: &Session<'_>, output: &mut Output) -> Result<Ended, Failure> {
        let mut config = session.load(output)?.config;
        if config.sandbox.mode == SandboxMode::Off {
            let message = "an agent's programs are not confined here (`sandbox.mode: off`)";
            failure::doubt(output, message);
        }
        self.changes.apply(&mut config, session)?;
        let runtime = session.runtime(config)?;
        let (confinement, backend) = match runtime.programs() {
            Programs::Confined(confinement, backend) => (confinement, *backend),
            Programs::Refused(reason) => {
                return Err(Failure::new(Cause::Denied, reason.to_string()));
            }
            other => return Err(Failure::new(Cause::Denied, other.word())),
        };
        if let Some(message) = runtime.programs().closed() {
            failure::doubt(output, &message);
        }
        let program = Program::new(self.command, session.working_directory().to_owned())
            .environment(runtime.context().environment().inherited());
        let said = if self.json { Said::Kept } else { Said::PassedOn };
        let done = match carry_out(runtime.context().spawner(), program, said, output) {
            Ok(done) => done,
            Err(NotStarted::Failure(failure)) => return Err(failure),
            Err(NotStarted::Program(ended, error)) => {
                Failure::failed(error.to_string()).print(output);
                return Ok(ended);
            }
        };
        let ended = ended(&done);
        let limit = done.reached.filter(|_| !done.status.success());
        if let Some(limit) = limit {
            failure::warning(output, &format!("the program failed: {limit}"));
        }
        for notice in &done.notices {
            failure::warning(output, notice);
        }
        if self.json {
            output.json(&json!({
                "backend": backend,
                "confinement": described(confinement, backend),
                "exitCode": ended.code(),
                "reached": limit.map(|limit| json!({ "key": limit.key(), "message": limit.to_string() })),
                "stdout": String::from_utf8_lossy(&done.stdout),
                "stderr": String::from_utf8_lossy(&done.stderr),
                "notices": done.notices,
            }));
        }
        Ok(ended)
    }
}

/// Whoever stopped it wants to read that, and not how the program took it.
fn ended(done: &Done) -> Ended {
    match done.asked {
        Some(cause) => cause.exit_code().into(),
        None => Ended::like(done.status),
    }
}

/// Returns a confinement as programs read it.
fn described(confinement: &Confinement, backend: Backend) -> Value {
    let closed = confinement.closed(backend);
    let is_open = |path: &&std::path::PathBuf| closed.iter().all(|(root, _)| root != path);
    let hidden: std::collections::BTreeSet<_> = confinement.hidden.iter().collect();
    let limits = &confinement.limits;
    json!({
        "read": confinement.read,
        "write": confinement.write,
        "shared": confinement.scratch.iter().filter(is_open).collect::<Vec<_>>(),
        "hidden": hidden,
        "network": confinement.network,
        "limits": {
            "processes": limits.processes,
            "memory": limits.memory,
            "memoryPerProcess": limits.memory_per_process,
            "cpuSeconds": limits.cpu.map(|time| time.as_secs_f64()),
            "cpuPerProcessSeconds": limits.cpu_per_process.map(|time| time.as_secs()),
            "fileSize": limits.file_size,
        },
    })
}
