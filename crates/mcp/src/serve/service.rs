//! What is served: an offer, a name, and how much a client may take.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use convoke_tool::{Clock, SystemClock};

use super::extras::Extras;
use super::offer::Offer;

/// Why a server did not start, or could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The server could be reached by others, and everybody could use it.
    #[error(
        "{address} can be reached from other machines, and no token is set; \
         set a token, or listen on 127.0.0.1"
    )]
    TokenMissing {
        /// Where it listens.
        address: std::net::SocketAddr,
    },
    /// A token that cannot be sent, or that can be guessed.
    #[error("the token has {length} characters; it takes {least} or more, without spaces")]
    WeakToken {
        /// How many it has.
        length: usize,
        /// How many it takes.
        least: usize,
    },
    /// What the settings call an origin is none.
    #[error("`{origin}` is not an origin; write it as `https://example.com`, without a path")]
    BadOrigin {
        /// What was written.
        origin: String,
    },
    /// What the settings call a host is none.
    #[error("`{host}` is not a host; write it as `example.com` or `example.com:8080`")]
    BadHost {
        /// What was written.
        host: String,
    },
    /// The path does not begin with a slash.
    #[error("`{path}` is not a path to serve at; write it as `/mcp`")]
    BadPath {
        /// What was written.
        path: String,
    },
    /// The streams or the listener failed.
    #[error("the connection failed: {0}")]
    Io(#[from] std::io::Error),
    /// The client did not begin as the protocol wants it.
    #[error("the client did not begin as the protocol wants it: {reason}")]
    Handshake {
        /// What it did.
        reason: String,
    },
}

/// How much clients may take.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServeLimits {
    /// How many calls of one server are under way or wait for their turn. More are refused.
    pub max_calls: usize,
    /// How long a call may take, whatever its tool says.
    pub longest_call: Duration,
    /// How long a call that was told to stop is waited for.
    pub stop_grace: Duration,
    /// How many tools one page of a list holds.
    pub page_size: usize,
    /// How many bytes of text and media one answer holds.
    pub max_content_bytes: usize,
    /// How many bytes the value beside the text has at most.
    pub max_structured_bytes: usize,
    /// How many bytes one message of a client has at most.
    pub max_message_bytes: usize,
    /// How many tasks there are at most, finished ones included.
    pub max_tasks: usize,
    /// How long the result of a finished task is kept.
    pub task_retention: Duration,
    /// How often a client should ask how a task is getting on.
    pub task_poll: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            max_calls: 256,
            longest_call: Duration::from_hours(1),
            stop_grace: Duration::from_mins(2),
            page_size: 100,
            max_content_bytes: 4 * 1024 * 1024,
            max_structured_bytes: 1024 * 1024,
            max_message_bytes: 4 * 1024 * 1024,
            max_tasks: 64,
            task_retention: Duration::from_mins(15),
            task_poll: Duration::from_secs(1),
        }
    }
}

/// Something to serve. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) title: Option<String>,
    pub(super) instructions: Option<String>,
    pub(super) offer: Arc<dyn Offer>,
    pub(super) extras: Option<Arc<dyn Extras>>,
    pub(super) limits: ServeLimits,
    pub(super) clock: Arc<dyn Clock>,
}

impl Service {
    /// Serves an offer under a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>, offer: Arc<dyn Offer>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            instructions: None,
            offer,
            extras: None,
            limits: ServeLimits::default(),
            clock: Arc::new(SystemClock),
        }
    }

    /// Gives it a name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Tells the models of its clients how to use it.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets how much clients may take.
    #[must_use]
    pub fn limits(mut self, limits: ServeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Answers more than calls of tools.
    #[must_use]
    pub fn extras(mut self, extras: Arc<dyn Extras>) -> Self {
        self.extras = Some(extras);
        self
    }

    /// Takes the times that clients are told from here.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Service")
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
