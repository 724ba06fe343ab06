//! The start of a server: a connection, and the list of its tools.

use std::sync::Arc;
use std::time::Duration;

use convoke_tool::Interlude;
use tokio::time::Instant;

use super::{FOREVER, Outcome, Server};
use crate::client::config::{Revision, Transport};
use crate::client::connection::{Connection, OpenFailure, Terms, open};
use crate::client::failure::Failure;
use crate::client::handler::Handler;
use crate::client::list::{Listed, list};
use crate::client::manifest::{Capability, Manifest};
use crate::client::negotiate::Opening;
use crate::client::state::OUTPUT;

/// How long a program that is not known may take to answer the first question before it is also asked
/// the second. Either answer is good, so this may be short.
const PROGRAM_PATIENCE: Duration = Duration::from_secs(2);

/// The time a start has.
struct Start {
    /// When it has to be done, if nobody logs in meanwhile.
    deadline: Instant,
    interlude: Arc<Interlude>,
}

impl Server {
    /// Starts it, within the time it has for that.
    pub(super) async fn start(self: &Arc<Self>) -> Outcome {
        let start = Start {
            deadline: Instant::now() + self.config.start_timeout,
            interlude: Arc::default(),
        };
        let opening = self.opening();
        let opened = match self.open(opening, &start).await {
            // Some servers end when they are asked what they do not know.
            Err(failure) if failure.hung_up && matches!(opening, Opening::Probe(_)) => {
                self.open(Opening::OnlyInitialize, &start).await
            }
            // What was known of it may not be true any more.
            Err(failure) if self.was_greeted(opening) && failure.may_be_asked_otherwise() => {
                self.open(self.probe(), &start).await
            }
            opened => opened,
        };
        let connection = opened.map_err(|failure| {
            if failure.unauthorized {
                Failure::Unauthorized(failure.why)
            } else {
                Failure::NotStarted(failure.why)
            }
        })?;
        let connection = Arc::new(connection);
        let first = self.first_list(&connection, &start).await;
        let first = first.map_err(|failure| match failure {
            Failure::Timeout(_) => {
                Failure::NotStarted(self.too_late("it did not list its tools in time"))
            }
            // Whoever logs in first can go on at once.
            failure @ Failure::Unauthorized(_) => failure,
            failure => {
                let why = failure.reason(self.name());
                Failure::NotStarted(match connection.nonsense() {
                    Some(said) => format!("{why}; {said}"),
                    None => why,
                })
            }
        });
        match first {
            Ok(()) => {
                if connection.nonsense().is_none() {
                    self.news.settle(self.name(), OUTPUT);
                }
                self.note_output(&connection);
                Ok(connection)
            }
            Err(failure) => {
                connection.stop();
                Err(failure)
            }
        }
    }

    async fn open(&self, opening: Opening, start: &Start) -> Result<Connection, OpenFailure> {
        let handler = Handler {
            server: self.name().into(),
            sampling: self.config.sampling,
            calls: Arc::default(),
            dirty: Arc::default(),
            interlude: Arc::clone(&start.interlude),
        };
        let deadline = start.interlude.after(start.deadline);
        open(&self.config, &self.surroundings, &self.heard, handler, opening, deadline).await
    }

    /// What it is asked first, by what is configured and what is known of it.
    fn opening(&self) -> Opening {
        let known = &self.offer().manifest.facts;
        match self.config.revision {
            Revision::Handshake => Opening::OnlyInitialize,
            Revision::Stateless => Opening::OnlyDiscover,
            Revision::Auto if known.revision.is_empty() || known.is_stateless() => self.probe(),
            Revision::Auto => match self.config.transport {
                Transport::Program { .. } => Opening::Greet,
                // Over HTTP one question is asked at a time, and after a refusal all begins anew.
                Transport::Http { .. } => Opening::OnlyInitialize,
            },
        }
    }

    /// Tells whether it was greeted because it was known to want that, and not because it was configured.
    fn was_greeted(&self, opening: Opening) -> bool {
        self.config.revision == Revision::Auto
            && matches!(opening, Opening::Greet | Opening::OnlyInitialize)
    }

    const fn probe(&self) -> Opening {
        match self.config.transport {
            Transport::Program { .. } => Opening::Probe(PROGRAM_PATIENCE),
            // Over HTTP one question is asked after the other, and silence is taken for an answer there.
            Transport::Http { .. } => Opening::Probe(FOREVER),
        }
    }

    /// Lists its tools. The other lists are read later: nobody waits for them.
    async fn first_list(
        self: &Arc<Self>,
        connection: &Connection,
        start: &Start,
    ) -> Result<(), Failure> {
        let facts = connection.facts().clone();
        let now = self.surroundings.clock.now();
        let mut manifest = Manifest::new(self.cache.fingerprint(), now, facts);
        if manifest.facts.tools != Capability::Absent {
            let Start { deadline, interlude } = start;
            let left = interlude.after(*deadline).saturating_duration_since(Instant::now());
            let terms = Terms { idle: left, total: left, context: None };
            let listed = interlude.within(*deadline, list(connection, Listed::Tools, terms));
            let listing = listed.await.unwrap_or(Err(Failure::Timeout(left)))?;
            self.take_tools(&mut manifest, listing);
        }
        // What else it offered the last time is likely to be there still.
        let known = self.offer();
        manifest.resources.clone_from(&known.manifest.resources);
        manifest.templates.clone_from(&known.manifest.templates);
        manifest.prompts.clone_from(&known.manifest.prompts);
        self.offers(manifest, Some(Instant::now()), false);
        Ok(())
    }
}
