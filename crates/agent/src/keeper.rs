//! Where the events of runs are kept: one place a run.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use convoke_core::{Event, RunId};
use convoke_journal::Inbox;
use convoke_tool::{EventSink, RecordError};

/// Makes the place in which the events of a new run are kept.
pub trait Keeper: Send + Sync + Debug {
    /// Makes it. A run whose place cannot be made ends before it begins.
    fn keep(&self, run: &RunId) -> Result<Place, RecordError>;
}

/// The place of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Place {
    /// Where its events are kept.
    pub sink: Arc<dyn EventSink>,
    /// Where other processes leave answers for it, if there is such a place.
    pub inbox: Option<Inbox>,
    /// The directory in which contents are kept that file tools replaced, if there is one.
    pub replaced: Option<PathBuf>,
}

impl Place {
    /// A place that other processes do not know.
    pub const fn new(sink: Arc<dyn EventSink>) -> Self {
        Self { sink, inbox: None, replaced: None }
    }

    /// A place that takes nothing, and says why.
    pub fn refusing(error: RecordError) -> Self {
        Self::new(Arc::new(Refusing(error)))
    }

    /// Other processes leave answers here.
    #[must_use]
    pub fn inbox(mut self, inbox: Inbox) -> Self {
        self.inbox = Some(inbox);
        self
    }

    /// Contents that file tools replace are kept here.
    #[must_use]
    pub fn replaced(mut self, directory: PathBuf) -> Self {
        self.replaced = Some(directory);
        self
    }
}

/// Puts the events of all runs into one sink.
#[derive(Debug)]
pub(crate) struct OneSink(pub(crate) Arc<dyn EventSink>);

impl Keeper for OneSink {
    fn keep(&self, _: &RunId) -> Result<Place, RecordError> {
        Ok(Place::new(Arc::clone(&self.0)))
    }
}

/// Takes nothing, and says why.
#[derive(Debug)]
pub(crate) struct Refusing(pub(crate) RecordError);

impl EventSink for Refusing {
    fn append(&self, _: &Arc<Event>) -> Result<(), RecordError> {
        Err(self.0.clone())
    }

    fn stream(&self, _: &Arc<Event>) {}
}
