//! What is said on the command line about a confinement: changes to a copy of the configuration.
//!
//! Nothing is confined by flags alone. The runtime makes a confinement of the configuration as it is
//! after the changes, as it does for agents, so the two cannot differ.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use convoke::config::{Config, SandboxBackend, SandboxMode, SandboxNetwork, Size, Timeout};
use convoke::sandbox::{AllowedHost, NotAHost};
use convoke_core::{Kind, Permission};

use crate::duration;
use crate::failure::Failure;
use crate::session::Session;

/// What is changed.
#[derive(Debug, Args)]
pub(super) struct Changes {
    /// Whom it may talk to, in place of `sandbox.network`
    #[arg(long, value_name = "WHO", value_parser = network_parser())]
    network: Option<SandboxNetwork>,
    /// Let it talk to this host and no other, in place of `sandbox.hosts`, as `example.com`,
    /// `*.example.com` or `host:port`; may be repeated
    #[arg(long, value_name = "HOST", conflicts_with = "network", value_parser = parse_host)]
    allow_host: Vec<AllowedHost>,
    /// Who confines it, in place of `sandbox.backend`
    #[arg(long, value_name = "WHO", value_parser = backend_parser())]
    backend: Option<SandboxBackend>,
    /// Hide this path from it, beside `sandbox.hidden` and the usual places of credentials; may be
    /// repeated
    #[arg(long, value_name = "PATH")]
    hide: Vec<PathBuf>,
    /// Let it write below this directory, in place of `tools.allowedPaths` and `sandbox.write`; may be
    /// repeated
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// Let it read below this directory and the system's own only, in place of `sandbox.read`; may be
    /// repeated
    #[arg(long, value_name = "DIR")]
    read: Vec<PathBuf>,
    /// How many processes it may be at a time, in place of `sandbox.limits.processes`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    processes: Option<u32>,
    /// How much memory it and everything it starts may take together, as 4GiB, in place of
    /// `sandbox.limits.memory`
    #[arg(long, value_name = "SIZE")]
    memory: Option<Size>,
    /// How much address space each process may take, as 4GiB, in place of
    /// `sandbox.limits.memoryPerProcess`
    #[arg(long, value_name = "SIZE")]
    memory_per_process: Option<Size>,
    /// How much processor time it and everything it starts may take together, as 10m, in place of
    /// `sandbox.limits.cpu`
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    cpu: Option<Timeout>,
    /// How much processor time each process may take, as 10m, in place of
    /// `sandbox.limits.cpuPerProcess`
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    cpu_per_process: Option<Timeout>,
    /// How large a file may grow, as 1GiB, in place of `sandbox.limits.fileSize`
    #[arg(long, value_name = "SIZE")]
    file_size: Option<Size>,
}

fn network_parser() -> impl TypedValueParser<Value = SandboxNetwork> {
    PossibleValuesParser::new(["none", "all"])
        .map(|word| if word == "all" { SandboxNetwork::All } else { SandboxNetwork::None })
}

fn backend_parser() -> impl TypedValueParser<Value = SandboxBackend> {
    PossibleValuesParser::new(["auto", "landlock", "bubblewrap"]).map(|word| match word.as_str() {
        "landlock" => SandboxBackend::Landlock,
        "bubblewrap" => SandboxBackend::Bubblewrap,
        _ => SandboxBackend::Auto,
    })
}

fn parse_host(text: &str) -> Result<AllowedHost, String> {
    text.parse().map_err(|error: NotAHost| error.to_string())
}

impl Changes {
    /// Changes a configuration. What it says about whether programs run is left out: this one does,
    /// confined or not at all.
    pub(super) fn apply(&self, config: &mut Config, session: &Session<'_>) -> Result<(), Failure> {
        config.policy.kinds.insert(Kind::Execute, Permission::Allow);
        let sandbox = &mut config.sandbox;
        sandbox.mode = SandboxMode::Required;
        sandbox.network = self.network.unwrap_or(sandbox.network);
        sandbox.backend = self.backend.unwrap_or(sandbox.backend);
        if !self.allow_host.is_empty() {
            sandbox.network = SandboxNetwork::Hosts;
            sandbox.hosts = self.allow_host.iter().map(ToString::to_string).collect();
        }
        sandbox.hidden.extend(existing(session, "--hide", &self.hide)?);
        if !self.read.is_empty() {
            sandbox.read = Some(existing(session, "--read", &self.read)?);
        }
        let limits = &mut sandbox.limits;
        limits.processes = self.processes.unwrap_or(limits.processes);
        limits.memory = self.memory.or(limits.memory);
        limits.memory_per_process = self.memory_per_process.or(limits.memory_per_process);
        limits.cpu = self.cpu.or(limits.cpu);
        limits.cpu_per_process = self.cpu_per_process.or(limits.cpu_per_process);
        limits.file_size = self.file_size.or(limits.file_size);
        if !self.write.is_empty() {
            sandbox.write.clear();
            config.tools.allowed_paths = Some(existing(session, "--write", &self.write)?);
        }
        Ok(())
    }
}

/// Returns the full paths. One that is not there is a typing error, and would say nothing about what was
/// meant.
fn existing(session: &Session<'_>, flag: &str, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let full = |path: &PathBuf| {
        let path = session.absolute(path);
        match path.symlink_metadata() {
            Ok(_) => Ok(path),
            Err(error) => {
                let message = format!("there is no `{}`, which {flag} names", path.display());
                Err(Failure::usage(message).because(&error))
            }
        }
    };
    paths.iter().map(full).collect()
}
