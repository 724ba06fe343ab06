//! The `sandbox` section: how programs are confined.

use convoke_sandbox::Network;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How programs are confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SandboxConfig {
    /// Whether programs are confined. With `auto`, they are wherever that can be enforced, and each is
    /// asked about where it cannot; with `required`, none runs there. A project's file cannot turn it off.
    pub mode: SandboxMode,
    /// Whom programs may talk to. A project's file cannot open what is closed.
    pub network: SandboxNetwork,
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

/// Whom programs may talk to, from loose to strict.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SandboxNetwork {
    /// Everybody.
    All,
    /// Nobody.
    #[default]
    None,
}

impl From<SandboxNetwork> for Network {
    fn from(network: SandboxNetwork) -> Self {
        match network {
            SandboxNetwork::All => Self::All,
            SandboxNetwork::None => Self::None,
        }
    }
}
