//! The events of a test, in memory.

use std::sync::Arc;

use convoke_core::{CallId, Event, EventBody};

use crate::clock::Clock;
use crate::record::{MemorySink, Recorder};

/// Everything that was recorded. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub struct CollectedEvents(Arc<MemorySink>);

impl CollectedEvents {
    /// Makes a recorder that writes here.
    pub fn recorder(&self, clock: Arc<dyn Clock>) -> Recorder {
        Recorder::new("testing", Arc::clone(&self.0) as Arc<dyn crate::EventSink>, clock)
    }

    /// Returns all events so far, in order.
    pub fn all(&self) -> Vec<Arc<Event>> {
        self.0.events()
    }

    /// Returns the events of one call, in order.
    pub fn of_call(&self, call: &CallId) -> Vec<Arc<Event>> {
        self.all().into_iter().filter(|event| event.call.as_ref() == Some(call)).collect()
    }

    /// Returns how many calls were requested.
    pub fn requested(&self) -> usize {
        self.count(|body| matches!(body, EventBody::ToolCallRequested { .. }))
    }

    /// Returns how many calls began to run.
    pub fn started(&self) -> usize {
        self.count(|body| matches!(body, EventBody::ToolCallStarted { .. }))
    }

    /// Returns how many calls ended, in whatever way.
    pub fn ended(&self) -> usize {
        self.count(EventBody::ends_call)
    }

    fn count(&self, counts: impl Fn(&EventBody) -> bool) -> usize {
        self.all().iter().filter(|event| counts(&event.body)).count()
    }
}
