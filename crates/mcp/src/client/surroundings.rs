//! Everything the servers use of the world outside.
//!
//! Nothing below reads an environment, a home directory or a clock by itself.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use convoke_tool::{Clock, NoProcesses, Spawner, SystemClock};
use reqwest::ClientBuilder;

use super::authorization::Authorization;
use super::stderr::Logs;
use crate::auth::Reach;

/// What all servers use of the world outside. [`Surroundings::new`] allows nothing: no programs, no
/// files.
#[derive(Clone)]
pub struct Surroundings {
    /// Starts programs, and decides what they may do.
    pub spawner: Arc<dyn Spawner>,
    /// Starts the programs of these servers in its place.
    pub spawners: BTreeMap<String, Arc<dyn Spawner>>,
    /// Variables that all programs get.
    pub environment: BTreeMap<String, String>,
    /// Where programs run.
    pub working_directory: PathBuf,
    /// Says what time it is.
    pub clock: Arc<dyn Clock>,
    /// Where what programs write to their standard error is kept, one file a server. Without it, it is where
    /// [`Servers::log_into`](super::Servers::log_into) says, or read and forgotten.
    pub log_directory: Option<PathBuf>,
    /// Where it is kept what servers offer, one file a server. Without it, a server's tools are known
    /// once it was started.
    pub cache_directory: Option<PathBuf>,
    /// Adds to the HTTP client: proxies, certificates. How redirects are followed is not up to it.
    pub http: Arc<dyn Fn(ClientBuilder) -> ClientBuilder + Send + Sync>,
    /// Tells remote servers who asks.
    pub authorization: Option<Arc<dyn Authorization>>,
    /// Where the addresses of these servers may lie. Those of others may lie anywhere.
    pub reach: BTreeMap<String, Reach>,
    /// Servers that are neither started nor asked, each with the reason for a person.
    pub refused: BTreeMap<String, String>,
    /// Where logs are kept now.
    pub(super) logs: Arc<Logs>,
}

impl Surroundings {
    /// Makes surroundings in which no program runs and nothing is kept.
    pub fn new(working_directory: impl Into<PathBuf>) -> Self {
        Self {
            spawner: Arc::new(NoProcesses),
            spawners: BTreeMap::new(),
            environment: BTreeMap::new(),
            working_directory: working_directory.into(),
            clock: Arc::new(SystemClock),
            log_directory: None,
            cache_directory: None,
            http: Arc::new(|builder| builder),
            authorization: None,
            reach: BTreeMap::new(),
            refused: BTreeMap::new(),
            logs: Arc::default(),
        }
    }

    /// Starts programs with this.
    #[must_use]
    pub fn spawner(mut self, spawner: Arc<dyn Spawner>) -> Self {
        self.spawner = spawner;
        self
    }

    /// Starts the program of this server with this.
    #[must_use]
    pub fn spawner_of(mut self, server: impl Into<String>, spawner: Arc<dyn Spawner>) -> Self {
        self.spawners.insert(server.into(), spawner);
        self
    }

    /// Gives programs these variables.
    #[must_use]
    pub fn environment(mut self, environment: BTreeMap<String, String>) -> Self {
        self.environment = environment;
        self
    }

    /// Takes the time from here.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Keeps logs here.
    #[must_use]
    pub fn log_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.log_directory = Some(directory.into());
        self
    }

    /// Keeps what servers offer here.
    #[must_use]
    pub fn cache_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache_directory = Some(directory.into());
        self
    }

    /// Adds to the HTTP client.
    #[must_use]
    pub fn http(
        mut self,
        setup: impl Fn(ClientBuilder) -> ClientBuilder + Send + Sync + 'static,
    ) -> Self {
        self.http = Arc::new(setup);
        self
    }

    /// Tells remote servers who asks with this.
    #[must_use]
    pub fn authorization(mut self, authorization: Arc<dyn Authorization>) -> Self {
        self.authorization = Some(authorization);
        self
    }

    /// Asks this server only at addresses that lie here.
    #[must_use]
    pub fn reach_of(mut self, server: impl Into<String>, reach: Reach) -> Self {
        self.reach.insert(server.into(), reach);
        self
    }

    /// Neither starts this server nor asks it anything, and says why.
    #[must_use]
    pub fn refuse(mut self, server: impl Into<String>, why: impl Into<String>) -> Self {
        self.refused.insert(server.into(), why.into());
        self
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Surroundings")
            .field("spawner", &self.spawner)
            .field("working_directory", &self.working_directory)
            .field("log_directory", &self.log_directory)
            .field("cache_directory", &self.cache_directory)
            .field("authorization", &self.authorization)
            .field("reach", &self.reach)
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}
