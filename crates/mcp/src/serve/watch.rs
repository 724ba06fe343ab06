//! Listens to the stream of events on behalf of clients that want to know how their calls go.
//!
//! Every event passes through unchanged, in order, to the sink it was meant for. On the way, what
//! concerns a watched call is told to its client: what the call itself says, and what the agents that
//! it started do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::event::Progress;
use convoke_core::{CallId, Event, EventBody, RunId};
use convoke_tool::{EventSink, RecordError, Synced, floor_char_boundary};

use super::progress::ProgressSink;

/// How much of one agent's step a client is told.
const MAX_LINE_BYTES: usize = 300;

/// A sink that also tells clients about their calls.
#[derive(Debug)]
pub struct CallWatch {
    sink: Arc<dyn EventSink>,
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    calls: HashMap<CallId, ProgressSink>,
    /// Runs of agents, and the watched call that each of them works for.
    runs: HashMap<RunId, CallId>,
}

impl CallWatch {
    /// Passes events on to `sink`.
    pub fn over(sink: Arc<dyn EventSink>) -> Arc<Self> {
        Arc::new(Self { sink, watched: Mutex::default() })
    }

    /// Tells `progress` about a call, as long as the guard lives.
    pub(super) fn watch(self: &Arc<Self>, call: CallId, progress: ProgressSink) -> WatchGuard {
        self.lock().calls.insert(call.clone(), progress);
        WatchGuard { watch: Arc::clone(self), call }
    }

    fn tell(&self, event: &Event) {
        let mut watched = self.lock();
        if watched.calls.is_empty() {
            return;
        }
        let Some(call) = watched.concerned(event) else { return };
        if let EventBody::AgentSpawned { child, .. } = &event.body {
            watched.runs.insert(child.clone(), call.clone());
        }
        let Some(progress) = watched.calls.get(&call).cloned() else { return };
        drop(watched);
        if let Some(update) = news(event) {
            progress.send(update);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    /// Returns the watched call that an event is about.
    fn concerned(&self, event: &Event) -> Option<CallId> {
        if event.parent.is_some() {
            return self.runs.get(&event.run).cloned();
        }
        event.call.clone().filter(|call| self.calls.contains_key(call))
    }
}

impl EventSink for CallWatch {
    fn append(&self, event: &Arc<Event>) -> Result<(), RecordError> {
        self.sink.append(event)?;
        self.tell(event);
        Ok(())
    }

    fn stream(&self, event: &Arc<Event>) {
        self.sink.stream(event);
        self.tell(event);
    }

    fn sync(&self) -> Synced {
        self.sink.sync()
    }
}

/// Ends the watch when it is dropped.
#[derive(Debug)]
pub(super) struct WatchGuard {
    watch: Arc<CallWatch>,
    call: CallId,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        let mut watched = self.watch.lock();
        watched.calls.remove(&self.call);
        watched.runs.retain(|_, call| *call != self.call);
    }
}

/// Says what an event means for somebody who waits for the call.
fn news(event: &Event) -> Option<Progress> {
    let text = match &event.body {
        // What a tool of an agent says line by line is the agent's business.
        EventBody::ToolCallProgress { update, .. } if event.parent.is_none() => {
            return Some(update.clone());
        }
        // What happens to the call itself, its result says.
        EventBody::ToolCallStarted { .. }
        | EventBody::ToolCallFailed { .. }
        | EventBody::ToolCallDenied { .. }
            if event.parent.is_none() =>
        {
            return None;
        }
        _ => told(event)?,
    };
    Some(Progress { text: Some(text), fraction: None })
}

/// Says in a line what an agent does, for somebody who waits for it: whom it starts, which tools it calls, what
/// goes wrong. Most events are not worth a line.
pub fn told(event: &Event) -> Option<String> {
    let agent = event.agent.as_str();
    let line = |text: &str| {
        let first = text.trim_start().lines().next().unwrap_or_default();
        let cut = first.get(..floor_char_boundary(first, MAX_LINE_BYTES)).unwrap_or_default();
        let more = if cut.len() < text.trim().len() { " …" } else { "" };
        Some(format!("{agent}: {cut}{more}\n"))
    };
    match &event.body {
        EventBody::AgentSpawned { name, .. } => line(&format!("starts {name}")),
        EventBody::ToolCallStarted { description, .. } => line(description),
        EventBody::ToolCallFailed { tool_name, error, .. } => {
            line(&format!("{tool_name} failed: {}", error.message))
        }
        EventBody::ToolCallDenied { tool_name, error, .. } => {
            line(&format!("{tool_name} was denied: {}", error.message))
        }
        EventBody::ApprovalAsked { description, .. } => {
            line(&format!("waits for an answer: {description}"))
        }
        EventBody::InquiryAsked { who, message, .. } => {
            line(&format!("waits for an answer: {who} asks: {message}"))
        }
        EventBody::BudgetAwaited { .. } => line("waits for budget that other agents hold"),
        EventBody::ModelRetry { reason, .. } => line(&format!("asks the model again: {reason}")),
        EventBody::ModelResponse { purpose, message, .. } if purpose.is_turn() => {
            let words = message.words();
            if words.trim().is_empty() { None } else { line(&words) }
        }
        EventBody::Warning { message } => line(message),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use convoke_core::ToolError;
    use convoke_tool::{ManualClock, MemorySink, Recorder};

    use super::*;

    fn spawned(child: &str, name: &str) -> EventBody {
        EventBody::AgentSpawned {
            child: child.into(),
            name: name.into(),
            inputs: serde_json::Map::new(),
            background: false,
            continued: false,
        }
    }

    fn failed(message: &str) -> EventBody {
        EventBody::ToolCallFailed {
            tool_name: "grep".into(),
            error: ToolError::failed(message),
            content: Vec::new(),
            duration_ms: convoke_core::Millis::default(),
            files: Vec::new(),
        }
    }

    fn said(text: &str) -> EventBody {
        let update = Progress { text: Some(text.into()), fraction: None };
        EventBody::ToolCallProgress { tool_name: "t".into(), update }
    }

    #[test]
    fn a_client_hears_of_its_call_and_of_the_agents_below_it_and_of_nothing_else() {
        let memory = Arc::new(MemorySink::default());
        let watch = CallWatch::over(memory.clone());
        let root = Recorder::new("r", watch.clone(), Arc::new(ManualClock::default()));
        let (mine, other) = (CallId::new("mine"), CallId::new("other"));
        let progress = ProgressSink::default();
        let guard = watch.watch(mine.clone(), progress.clone());

        root.record(Some(&other), said("not this\n")).unwrap();
        root.record(Some(&other), spawned("x", "stranger")).unwrap();
        root.record(Some(&mine), said("working\n")).unwrap();
        root.record(Some(&mine), spawned("a", "digger")).unwrap();
        let digger = root.child("a", "digger");
        digger.record(Some(&"1".into()), said("a line of a tool of the agent")).unwrap();
        digger.record(Some(&"1".into()), spawned("b", "helper")).unwrap();
        digger.child("b", "helper").record(Some(&"2".into()), failed("no\nsuch file")).unwrap();
        root.child("x", "stranger").record(Some(&"3".into()), failed("unheard")).unwrap();

        let text = progress.take().unwrap().text.unwrap();
        assert_eq!(
            text,
            "working\nmain: starts digger\nmain/digger: starts helper\n\
             main/digger/helper: grep failed: no …\n"
        );
        assert_eq!(memory.events().len(), 8, "every event passes");
        drop(guard);
        root.record(Some(&mine), said("nobody listens")).unwrap();
        assert_eq!(progress.take(), None);
    }
}
