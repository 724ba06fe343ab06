//! The `sandbox` section: how programs are confined.

use std::path::PathBuf;

use convoke_sandbox::{Backend, ConfinedSpawner, Confinement, Limits, Network, NotEnforceable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::size::Size;
use super::timeout::Timeout;

/// How programs are confined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SandboxConfig {
    /// Whether programs are confined. With `auto`, they are wherever that can be enforced, and each is
    /// asked about where it cannot; with `required`, none runs there. A project's file cannot turn it off.
    pub mode: SandboxMode,
    /// Who confines them. With `auto` it is Landlock where that can enforce everything, and bubblewrap
    /// where it cannot. A project's file cannot choose.
    pub backend: SandboxBackend,
    /// Whom programs may talk to; with `hosts`, to those that `hosts` lists, through a proxy. A project's
    /// file cannot open what is closed.
    pub network: SandboxNetwork,
    /// Hosts that programs may talk to where the network is `hosts`, as `example.com`, `*.example.com` or
    /// an address, with a port if it is not 80 or 443. A project's file cannot add to the user's list.
    pub hosts: Vec<String>,
    /// Paths that programs can neither read nor write, beside the usual places of credentials; `~/` is
    /// the home directory. A project's file adds to the user's list.
    #[schemars(extend("items" = { "type": "string", "format": "path", "minLength": 1 }))]
    pub hidden: Vec<PathBuf>,
    /// The only directories that programs may read, beside those that they may write and the system's
    /// own; without the key they may read everything that is not hidden. A project's file can only narrow
    /// what the user allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("items" = { "type": "string", "format": "path", "minLength": 1 }))]
    pub read: Option<Vec<PathBuf>>,
    /// Directories that programs may write, beside `tools.allowedPaths`. A project's file cannot add to
    /// the user's list.
    #[schemars(extend("items" = { "type": "string", "format": "path", "minLength": 1 }))]
    pub write: Vec<PathBuf>,
    /// How much a program may use. A project's file can only lower what the user allows.
    pub limits: SandboxLimits,
}

/// How much a program may use, with everything it starts. What is not set is not limited. `memory` and `cpu`
/// need a control group; where none can be made they are refused, and `convoke doctor` says why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SandboxLimits {
    /// How many processes one command may be at a time, itself included. Where `memory` or `cpu` is set,
    /// threads may count as well.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub processes: u32,
    /// How much memory a program and everything it starts may take together, as `4GiB` or in bytes; it is
    /// ended when it needs more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// How much address space each process may take, as `4GiB` or in bytes. Some runtimes reserve far
    /// more than they use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_per_process: Option<Size>,
    /// How much processor time a program and everything it starts may take together, as `10m` or in
    /// milliseconds; it is ended when it takes more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Timeout>,
    /// How much processor time each process may take, as `10m` or in milliseconds; counted in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_per_process: Option<Timeout>,
    /// How large a file may grow, as `1GiB` or in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<Size>,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self {
            processes: 2048,
            memory: None,
            memory_per_process: None,
            cpu: None,
            cpu_per_process: None,
            file_size: None,
        }
    }
}

/// Whether programs are confined, from loose to strict.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// No.
    Off,
    /// Where it can be enforced.
    #[default]
    Auto,
    /// Always, or they do not run.
    Required,
}

/// Who confines programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxBackend {
    /// Whoever can, Landlock first.
    #[default]
    Auto,
    /// The kernel, by Landlock.
    Landlock,
    /// The program `bwrap`.
    Bubblewrap,
}

/// Whom programs may talk to, from loose to strict.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SandboxNetwork {
    /// Everybody.
    All,
    /// Those that are listed.
    Hosts,
    /// Nobody.
    #[default]
    None,
}

impl SandboxConfig {
    /// Returns whom programs may talk to.
    pub fn network(&self) -> Network {
        match self.network {
            SandboxNetwork::All => Network::All,
            SandboxNetwork::Hosts => Network::Hosts(self.hosts.clone()),
            SandboxNetwork::None => Network::None,
        }
    }

    /// Makes a spawner of programs that are confined as these settings say.
    pub(crate) fn spawner(
        &self,
        confinement: Confinement,
    ) -> Result<ConfinedSpawner, NotEnforceable> {
        self.backed(self.apply(confinement))
    }

    /// Makes a spawner of programs that are confined by the chosen backend, exactly as it is said here.
    pub(crate) fn backed(
        &self,
        confinement: Confinement,
    ) -> Result<ConfinedSpawner, NotEnforceable> {
        match self.backend {
            SandboxBackend::Auto => ConfinedSpawner::new(confinement),
            SandboxBackend::Landlock => {
                ConfinedSpawner::with_backend(confinement, Backend::Landlock)
            }
            SandboxBackend::Bubblewrap => {
                ConfinedSpawner::with_backend(confinement, Backend::Bubblewrap)
            }
        }
    }

    /// Makes a confinement what these settings say.
    fn apply(&self, mut confinement: Confinement) -> Confinement {
        confinement.write.extend(self.write.iter().cloned());
        confinement.hidden.extend(self.hidden.iter().cloned());
        if let Some(read) = &self.read {
            confinement = confinement.reading_only(read.iter().cloned());
        }
        let limits = &self.limits;
        confinement.network(self.network()).limits(Limits {
            processes: Some(limits.processes),
            memory: limits.memory.map(Size::bytes),
            memory_per_process: limits.memory_per_process.map(Size::bytes),
            cpu: limits.cpu.map(Timeout::duration),
            cpu_per_process: limits.cpu_per_process.map(Timeout::duration),
            file_size: limits.file_size.map(Size::bytes),
        })
    }
}
