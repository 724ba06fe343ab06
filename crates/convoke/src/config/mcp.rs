//! MCP servers: where their tools come from, and how far what they say is believed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::secret::Secret;
use super::timeout::Timeout;

/// An MCP server whose tools are used: a program that is started here (`command`), or a server at an address
/// (`url`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct McpServerConfig {
    /// Its name: letters, digits, `_` and `-`, at most 64. A server of the same name in a later layer changes
    /// this one, key by key; a project can only switch yours off, or use less of it.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$"))]
    pub name: String,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^https?://"))]
    pub url: Option<String>,
    /// The program that is started, without a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<String>,
    /// The arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables the program gets beside the usual ones. They are never shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Secret>,
    /// Where the program runs: `workspace`, `workspace/…`, or a directory relative to that of the file that says
    /// so. Without the key, a program of yours runs in your home directory, and a project's in the workspace. In
    /// a folder that is not trusted, a program that runs in the workspace is confined as a project's is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("format" = "path", "x-workspace" = true))]
    pub cwd: Option<PathBuf>,
    /// Headers of every request to the address. They are never shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secret>,
    /// How the server at the address is told who asks, where it wants OAuth and more is needed than it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<McpAuthConfig>,
    /// Names of its tools that are used, with `*` for any text; without the key, all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Names of its tools that are not used, with `*` for any text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// How long a call may be silent, as `90s` or in milliseconds. Progress starts the time anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Timeout>,
    /// How long it may take to start, as `90s` or in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_timeout: Option<Timeout>,
    /// Whether it is believed what it says about its tools: that one only reads, for instance.
    #[serde(default)]
    pub trust: bool,
    /// Which form of the protocol is spoken.
    #[serde(default)]
    pub revision: McpRevision,
    /// Whether it may ask the model of the run, which pays for it.
    #[serde(default)]
    pub sampling: bool,
    /// Whether it is used.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

/// How a remote server is told who asks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct McpAuthConfig {
    /// The id under which this program is known there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The secret that belongs to the id. It is never shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// The address of a document that says who this program is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^https://"))]
    pub client_metadata_url: Option<String>,
    /// What is asked for, where the server does not say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The port of this machine to which a browser comes back; any that is free, without the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_port: Option<u16>,
}

/// Which form of the protocol is spoken with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum McpRevision {
    /// What the server is known to speak; if it is not known, it is asked.
    #[default]
    Auto,
    /// A handshake first: revisions up to 2025-11-25.
    Handshake,
    /// No handshake: revision 2026-07-28.
    Stateless,
}

const fn enabled() -> bool {
    true
}
