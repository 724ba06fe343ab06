//! What a user says about a server before anybody has spoken to it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use convoke_core::policy::wildcard;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::http::without_secrets;
use super::name::{hex, names_begin};

/// One server as configured.
///
/// ```
/// use std::time::Duration;
///
/// use convoke_mcp::client::{ServerConfig, Trust};
///
/// let files = ServerConfig::program("files", "mcp-server-filesystem", ["/srv/data"])
///     .exclude(["write_*", "move_file"])
///     .timeout(Duration::from_secs(20))
///     .trust(Trust::Annotations);
/// assert!(files.takes("read_file") && !files.takes("write_file"));
///
/// let remote = ServerConfig::http("search", "https://mcp.example/mcp")
///     .header("x-team", "blue");
/// assert!(!format!("{remote:?}").contains("blue"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// What it is called here: in the names of its tools, in messages, and in the name of its log.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// Whether it is used at all.
    pub enabled: bool,
    /// Which of its tools are wanted; `*` stands for anything. Empty means all.
    pub include: Vec<String>,
    /// Which of its tools are not wanted, also if they are included.
    pub exclude: Vec<String>,
    /// How long a call may be silent. Progress that the server reports starts the time anew.
    pub timeout: Duration,
    /// How long a call may take altogether, whatever it reports.
    pub longest_call: Duration,
    /// How long it may take until it is ready.
    pub start_timeout: Duration,
    /// Whether what it says about its tools is believed.
    pub trust: Trust,
    /// Which form of the protocol is spoken.
    pub revision: Revision,
    /// Whether it may ask for answers of a model.
    pub sampling: Sampling,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A program that is started here and spoken to over its standard streams.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables it gets beside those that all programs get.
        env: BTreeMap<String, String>,
        /// Where it runs, if not where all of them do.
        cwd: Option<PathBuf>,
    },
    /// A server on the network (or on this machine) that speaks streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
    },
}

/// Whether what a server says about its tools is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// It is not: every tool may do anything, and is never repeated on its own.
    #[default]
    Nothing,
    /// It is: a tool that says it only reads counts as one that reads.
    Annotations,
}

/// Which form of the protocol is spoken with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Revision {
    /// What the server is known to speak; if it is not known, it is asked.
    #[default]
    Auto,
    /// A handshake first: revisions up to 2025-11-25.
    Handshake,
    /// No handshake: revision 2026-07-28.
    Stateless,
}

/// Whether a server may ask for answers of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// It may not.
    #[default]
    Refused,
    /// It may, where the call that it works for has a [`Sampler`](super::Sampler).
    Granted,
}

impl ServerConfig {
    /// Describes a program that is started here.
    pub fn program(
        name: impl Into<String>,
        command: impl Into<String>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        let env = BTreeMap::new();
        Self::new(name, Transport::Program { command: command.into(), args, env, cwd: None })
    }

    /// Describes a server at an address.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name, Transport::Http { url: url.into(), headers: BTreeMap::new() })
    }

    /// Describes a server, with the default of everything else.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            transport,
            enabled: true,
            include: Vec::new(),
            exclude: Vec::new(),
            timeout: Duration::from_mins(1),
            longest_call: Duration::from_mins(10),
            start_timeout: Duration::from_secs(30),
            trust: Trust::default(),
            revision: Revision::default(),
            sampling: Sampling::default(),
        }
    }

    /// Sets a variable for a program. Means nothing to others.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Transport::Program { env, .. } = &mut self.transport {
            env.insert(name.into(), value.into());
        }
        self
    }

    /// Sets where a program runs. Means nothing to others.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        if let Transport::Program { cwd, .. } = &mut self.transport {
            *cwd = Some(directory.into());
        }
        self
    }

    /// Sets a header of every request. Means nothing to programs.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Transport::Http { headers, .. } = &mut self.transport {
            headers.insert(name.into(), value.into());
        }
        self
    }

    /// Leaves the server out.
    #[must_use]
    pub const fn disabled(mut self) -> Self {
        self.enabled = false;
        self
    }

    /// Takes only the tools these patterns cover.
    #[must_use]
    pub fn include(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.include = patterns.into_iter().map(Into::into).collect();
        self
    }

    /// Takes no tool these patterns cover.
    #[must_use]
    pub fn exclude(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.exclude = patterns.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how long a call may be silent.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long a call may take altogether.
    #[must_use]
    pub const fn longest_call(mut self, longest: Duration) -> Self {
        self.longest_call = longest;
        self
    }

    /// Sets how long it may take until the server is ready.
    #[must_use]
    pub const fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Sets whether what the server says about its tools is believed.
    #[must_use]
    pub const fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets which form of the protocol is spoken.
    #[must_use]
    pub const fn revision(mut self, revision: Revision) -> Self {
        self.revision = revision;
        self
    }

    /// Sets whether the server may ask for answers of a model.
    #[must_use]
    pub const fn sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Tells whether a tool of this name is wanted.
    pub fn takes(&self, tool: &str) -> bool {
        let covered = |patterns: &[String]| patterns.iter().any(|one| wildcard(one, tool));
        (self.include.is_empty() || covered(&self.include)) && !covered(&self.exclude)
    }

    /// Returns how the names of its tools begin for models, as `mcp__files__`. Those of no other server begin so.
    pub fn names_begin(&self) -> String {
        names_begin(&self.name)
    }

    /// Returns what tells this server from another behind the same name: a hash of how it is reached.
    /// For a program it also matters where it is started.
    pub(super) fn fingerprint(&self, place: Option<&[u8]>) -> String {
        let mut reached = serde_json::to_vec(&self.transport).unwrap_or_default();
        reached.extend_from_slice(place.unwrap_or_default());
        hex(&Sha256::digest(reached))
    }
}

/// Variables and headers may hold secrets, so only their names are shown.
impl fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
        match self {
            Self::Program { command, args, env, cwd } => formatter
                .debug_struct("Program")
                .field("command", command)
                .field("args", args)
                .field("env", &names(env))
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers } => formatter
                .debug_struct("Http")
                .field("url", &without_secrets(url))
                .field("headers", &names(headers))
                .finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_excluded_stays_out_also_if_it_is_included() {
        let config = ServerConfig::program("s", "x", ["-v"]);
        assert!(config.takes("anything"));
        let config = config.include(["read_*", "list"]).exclude(["*_secret"]);
        assert!(config.takes("read_file") && config.takes("list"));
        assert!(!config.takes("write") && !config.takes("read_secret"));
    }

    #[test]
    fn the_fingerprint_follows_how_the_server_is_reached_and_nothing_else() {
        let config = ServerConfig::program("s", "x", ["-v"]);
        let same = config.clone().timeout(Duration::from_secs(1)).exclude(["a"]);
        assert_eq!(config.fingerprint(None), same.fingerprint(None));
        assert_ne!(config.fingerprint(None), config.clone().env("A", "1").fingerprint(None));
        assert_ne!(config.fingerprint(None), ServerConfig::http("s", "http://x").fingerprint(None));
    }

    #[test]
    fn secrets_are_not_shown() {
        let config = ServerConfig::program("s", "x", ["-v"]).env("TOKEN", "hush");
        let shown = format!("{config:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hush"), "{shown}");
        let remote = ServerConfig::http("s", "https://me:hush@a.example/mcp?key=hush");
        let shown = format!("{remote:?}");
        assert!(shown.contains("https://a.example/mcp") && !shown.contains("hush"), "{shown}");
    }
}
