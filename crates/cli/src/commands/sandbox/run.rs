//! `convoke sandbox run`: one program, confined as an agent's programs are.

use std::path::PathBuf;
use std::process::ExitStatus;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use convoke::sandbox::{AllowedHost, Backend, ConfinedSpawner, Confinement, Network, NotAHost};
use convoke_core::{Cause, ExitCode};
use convoke_tool::{Process, Program, SessionEnvironment, Spawner};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::failure::Failure;
use crate::output::{Output, Stream};
use crate::session::Session;
use crate::signals::Signals;

const AFTER_HELP: &str = "\
Without options the program gets what an agent's programs get: it reads everything but secrets, writes \
here and in the directory for temporary files, and talks to nobody. It has no input and no terminal. \
`convoke doctor` says what can be enforced on this machine; what cannot be is refused.

Examples:
  convoke sandbox run -- sh -c 'cat ~/.ssh/id_ed25519'
  convoke sandbox run --network all -- curl -I https://example.org
  convoke sandbox run --allow-host '*.crates.io' -- cargo fetch
  convoke sandbox run --read . --write /tmp/out -- make

Exit codes:
  0 the program succeeded, 1 it failed, 3 it cannot be confined like that, 130 interrupted,
  143 terminated";

/// Run a program as confined as an agent's programs are
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Run {
    /// Whom it may talk to
    #[arg(long, value_name = "WHO", default_value = "none", value_parser = network_parser())]
    network: Network,
    /// Who confines it; without it, whoever can, Landlock first
    #[arg(long, value_name = "WHO", value_parser = backend_parser())]
    backend: Option<Backend>,
    /// Let it talk to this host and no other, as `example.com`, `*.example.com` or `host:port`; may be
    /// repeated
    #[arg(long, value_name = "HOST", conflicts_with = "network", value_parser = parse_host)]
    allow_host: Vec<AllowedHost>,
    /// Hide this path from it, beside the usual places of credentials; may be repeated
    #[arg(long, value_name = "PATH")]
    hide: Vec<PathBuf>,
    /// Let it write below this directory, in place of the working directory; may be repeated
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// Let it read below this directory and the system's own only; may be repeated
    #[arg(long, value_name = "DIR")]
    read: Vec<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn network_parser() -> impl TypedValueParser<Value = Network> {
    PossibleValuesParser::new(["none", "all"])
        .map(|word| if word == "all" { Network::All } else { Network::None })
}

fn backend_parser() -> impl TypedValueParser<Value = Backend> {
    PossibleValuesParser::new(["landlock", "bubblewrap"])
        .map(|word| if word == "landlock" { Backend::Landlock } else { Backend::Bubblewrap })
}

fn parse_host(text: &str) -> Result<AllowedHost, String> {
    text.parse().map_err(|error: NotAHost| error.to_string())
}

impl Run {
    /// Runs the command.
    pub(super) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let confinement = self.confinement(session);
        let spawner = match self.backend {
            None => ConfinedSpawner::new(confinement),
            Some(backend) => ConfinedSpawner::with_backend(confinement, backend),
        };
        let spawner = spawner.map_err(|reason| Failure::new(Cause::Denied, reason.to_string()))?;
        let environment = SessionEnvironment::new(session.environment().variables());
        let program = Program::new(self.command, session.working_directory().to_owned())
            .environment(environment.inherited());
        let threads = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let threads = threads
            .map_err(|error| Failure::failed("the program cannot be started").because(&error))?;
        let status = threads.block_on(carry_out(&spawner, program, output))?;
        if status.success() {
            return Ok(ExitCode::Done);
        }
        if !output.is_quiet() {
            output.err.line(format_args!("the program ended with {status}"));
        }
        Ok(ExitCode::Failed)
    }

    fn confinement(&self, session: &Session<'_>) -> Confinement {
        let absolute = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().map(|path| session.absolute(path)).collect()
        };
        let write = match self.write.as_slice() {
            [] => vec![session.working_directory().to_owned()],
            named => absolute(named),
        };
        let environment = session.environment();
        let temporary = environment.variables().remove("TMPDIR");
        let temporary = temporary.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let network = match self.allow_host.as_slice() {
            [] => self.network.clone(),
            hosts => Network::Hosts(hosts.iter().map(ToString::to_string).collect()),
        };
        let mut confinement =
            Confinement::for_commands(write, temporary, environment.home().as_deref())
                .network(network);
        confinement.hidden.extend(environment.state_directory());
        confinement.hidden.extend(absolute(&self.hide));
        if !self.read.is_empty() {
            confinement = confinement.reading_only(absolute(&self.read));
        }
        confinement
    }
}

/// Runs the program to its end. The first signal asks it to end, the second does not ask.
async fn carry_out(
    spawner: &ConfinedSpawner,
    program: Program,
    output: &Output,
) -> Result<ExitStatus, Failure> {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::failed("signals cannot be heard").because(&error))?;
    let mut process =
        spawner.spawn(program).await.map_err(|error| Failure::failed(error.to_string()))?;
    let streams = process.take_streams().ok_or_else(|| Failure::failed("it has no streams"))?;
    drop(streams.stdin);
    let told = async {
        tokio::join!(tell(streams.stdout, &output.out), tell(streams.stderr, &output.err))
    };
    let (ended, _) = tokio::join!(wait(process.as_mut(), &mut signals), told);
    ended
}

async fn wait(process: &mut dyn Process, signals: &mut Signals) -> Result<ExitStatus, Failure> {
    let mut asked = false;
    loop {
        let cause = tokio::select! {
            ended = process.wait() => {
                return ended.map_err(|error| {
                    Failure::failed("the program could not be waited for").because(&error)
                });
            }
            cause = signals.next() => cause,
        };
        if asked {
            process.kill();
            return Err(Failure::new(cause, "the program was ended"));
        }
        asked = true;
        process.terminate();
    }
}

/// Hands on what a program says, line by line.
async fn tell(from: Box<dyn AsyncRead + Send + Unpin>, to: &Stream) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    // An error on a pipe is its end as far as output goes.
    while let Ok(1..) = from.read_until(b'\n', &mut line).await {
        to.text(String::from_utf8_lossy(&line));
        to.flush();
        line.clear();
    }
}
