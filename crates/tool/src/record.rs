//! The stream of events: numbers them, stamps them, and hands them to whoever keeps or shows them.
//!
//! A durable event is accepted *before* the effect it announces begins. If the sink cannot accept one,
//! the stream is closed: nothing later is recorded either, and the pipeline starts no further call. A
//! gap in the record is worse than a stop.
//!
//! Nothing passes with a secret in it: what is told at once has names in their place, and what is told
//! piece by piece is held back as long as it may be the beginning of one.

mod texts;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::event::VERSION;
use convoke_core::secret::Hidden;
use convoke_core::{AgentPath, CallId, Event, EventBody, Position, RunId, Secrets, Timestamp};

use self::texts::Texts;
use crate::clock::Clock;

/// An event could not be recorded.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the event could not be recorded: {reason}")]
pub struct RecordError {
    /// Why not.
    pub reason: Arc<str>,
}

impl RecordError {
    /// Makes an error with this reason.
    pub fn new(reason: impl Into<Arc<str>>) -> Self {
        Self { reason: reason.into() }
    }
}

/// Takes events, in order. Calls do not overlap.
pub trait EventSink: Send + Sync + Debug {
    /// Accepts a durable event. When this returns, the event will survive the process.
    fn append(&self, event: &Arc<Event>) -> Result<(), RecordError>;

    /// Shows an ephemeral event to whoever is looking.
    fn stream(&self, event: &Arc<Event>);

    /// Waits until everything that was accepted will survive the machine, too. A sink that keeps nothing
    /// has nothing to wait for.
    fn sync(&self) -> Synced {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Ends when everything that was accepted before is safe.
pub type Synced = Pin<Box<dyn Future<Output = Result<(), RecordError>> + Send>>;

/// Sees the durable events of one run, each right after it was accepted and before the next.
pub trait Observer: Send + Sync + Debug {
    /// Looks at an event.
    fn observe(&self, event: &Event);
}

/// Keeps nothing, shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl EventSink for NullSink {
    fn append(&self, _: &Arc<Event>) -> Result<(), RecordError> {
        Ok(())
    }

    fn stream(&self, _: &Arc<Event>) {}
}

/// Keeps every event in memory: for tests and short lives.
#[derive(Debug, Default)]
pub struct MemorySink(Mutex<Vec<Arc<Event>>>);

impl MemorySink {
    /// Returns the events so far.
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, event: &Arc<Event>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(event));
    }
}

impl EventSink for MemorySink {
    fn append(&self, event: &Arc<Event>) -> Result<(), RecordError> {
        self.keep(event);
        Ok(())
    }

    fn stream(&self, event: &Arc<Event>) {
        self.keep(event);
    }
}

/// Writes the events of one run into the stream it shares with its whole tree. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recorder {
    stream: Arc<Stream>,
    run: RunId,
    parent: Option<RunId>,
    agent: AgentPath,
    observer: Option<Arc<dyn Observer>>,
    secrets: Secrets,
    /// Locked before the place in the stream, where both are.
    texts: Arc<Mutex<Texts>>,
}

#[derive(Debug)]
struct Stream {
    sink: Arc<dyn EventSink>,
    clock: Arc<dyn Clock>,
    place: Mutex<Place>,
}

#[derive(Debug, Default)]
struct Place {
    seq: u64,
    index: u64,
    closed: Option<RecordError>,
}

impl Recorder {
    /// Starts a stream for a root run.
    pub fn new(run: impl Into<RunId>, sink: Arc<dyn EventSink>, clock: Arc<dyn Clock>) -> Self {
        let stream = Arc::new(Stream { sink, clock, place: Mutex::default() });
        Self {
            stream,
            run: run.into(),
            parent: None,
            agent: AgentPath::default(),
            observer: None,
            secrets: Secrets::default(),
            texts: Arc::default(),
        }
    }

    /// Goes on with a stream whose last durable event has this number.
    #[must_use]
    pub fn after(self, seq: u64) -> Self {
        self.stream.place.lock().unwrap_or_else(PoisonError::into_inner).seq = seq;
        self
    }

    /// Returns a recorder for a child run, into the same stream.
    #[must_use]
    pub fn child(&self, run: impl Into<RunId>, agent: &str) -> Self {
        Self {
            stream: Arc::clone(&self.stream),
            run: run.into(),
            parent: Some(self.run.clone()),
            agent: self.agent.child(agent),
            observer: None,
            secrets: self.secrets.clone(),
            texts: Arc::default(),
        }
    }

    /// Returns a recorder that puts names in the place of these secrets before anybody sees an event.
    #[must_use]
    pub fn hiding(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Returns a recorder that shows what it records to an observer.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Returns what is hidden.
    pub const fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Returns which run's events these are.
    pub const fn run(&self) -> &RunId {
        &self.run
    }

    /// Returns which agent's events these are.
    pub const fn agent(&self) -> &AgentPath {
        &self.agent
    }

    /// Returns the time that an event recorded now would have.
    pub fn now(&self) -> Timestamp {
        self.stream.clock.now()
    }

    /// Returns the number of the last durable event of the stream.
    pub fn seq(&self) -> u64 {
        self.stream.place.lock().unwrap_or_else(PoisonError::into_inner).seq
    }

    /// Says why nothing can be recorded any more, if that is so.
    pub fn check(&self) -> Result<(), RecordError> {
        let place = self.stream.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.closed.clone().map_or(Ok(()), Err)
    }

    /// Waits until everything that was recorded will survive the machine. If that fails, nothing more is
    /// recorded.
    pub async fn sync(&self) -> Result<(), RecordError> {
        let synced = self.stream.sink.sync().await;
        if let Err(error) = &synced {
            let mut place = self.stream.place.lock().unwrap_or_else(PoisonError::into_inner);
            place.closed.get_or_insert_with(|| error.clone());
        }
        synced
    }

    /// Returns an event as it would be recorded now, secrets hidden, for whoever has a say before it is.
    pub(crate) fn preview(&self, call: Option<&CallId>, body: EventBody) -> Event {
        let untold = |message| EventBody::Error { message };
        Event {
            v: VERSION,
            position: Position::Ephemeral { after: self.seq(), index: 0 },
            ts: self.stream.clock.now(),
            run: self.run.clone(),
            parent: self.parent.clone(),
            agent: self.agent.clone(),
            call: call.cloned(),
            secrets: BTreeSet::new(),
            body: self.secrets.hide_in(body).unwrap_or_else(untold),
        }
    }

    /// Records one event. A durable one is accepted when this returns; an ephemeral one cannot fail.
    pub fn record(&self, call: Option<&CallId>, body: EventBody) -> Result<(), RecordError> {
        if body.is_durable() {
            return self.keep(call, body);
        }
        self.show(call, body);
        Ok(())
    }

    fn keep(&self, call: Option<&CallId>, body: EventBody) -> Result<(), RecordError> {
        let hidden = self.secrets.hide_and_note(body);
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let rest =
            hidden.as_ref().map(|hidden| texts.ended_by(call, &hidden.body)).unwrap_or_default();
        let mut place = self.stream.place.lock().unwrap_or_else(PoisonError::into_inner);
        drop(texts);
        for (call, piece) in rest {
            self.stream.sink.stream(&self.event(
                place.next(false),
                call.as_ref(),
                BTreeSet::new(),
                piece,
            ));
        }
        if let Some(error) = &place.closed {
            return Err(error.clone());
        }
        let Hidden { body, secrets } = match hidden {
            Ok(hidden) => hidden,
            // What has to be kept and cannot be ends the stream.
            Err(reason) => {
                return Err(place.closed.get_or_insert(RecordError::new(reason)).clone());
            }
        };
        // A tool has what it said, whether or not that can be kept.
        self.secrets.note(&secrets);
        let event = self.event(place.next(true), call, secrets, body);
        let accepted = self.stream.sink.append(&event);
        match &accepted {
            Ok(()) => {
                place.advance();
                if let Some(observer) = &self.observer {
                    observer.observe(&event);
                }
            }
            Err(error) => place.closed = Some(error.clone()),
        }
        accepted
    }

    fn show(&self, call: Option<&CallId>, body: EventBody) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(body) = texts.take(&self.secrets, call, body) else { return };
        let mut place = self.stream.place.lock().unwrap_or_else(PoisonError::into_inner);
        drop(texts);
        self.stream.sink.stream(&self.event(place.next(false), call, BTreeSet::new(), body));
    }

    fn event(
        &self,
        position: Position,
        call: Option<&CallId>,
        secrets: BTreeSet<String>,
        body: EventBody,
    ) -> Arc<Event> {
        Arc::new(Event {
            v: VERSION,
            position,
            ts: self.stream.clock.now(),
            run: self.run.clone(),
            parent: self.parent.clone(),
            agent: self.agent.clone(),
            call: call.cloned(),
            secrets,
            body,
        })
    }
}

impl Place {
    const fn next(&mut self, durable: bool) -> Position {
        if durable {
            return Position::Durable { seq: self.seq + 1 };
        }
        self.index += 1;
        Position::Ephemeral { after: self.seq, index: self.index - 1 }
    }

    const fn advance(&mut self) {
        self.seq += 1;
        self.index = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use convoke_core::event::Progress;

    use super::*;
    use crate::clock::ManualClock;

    #[derive(Debug, Default)]
    struct FullDisk(AtomicBool);

    impl EventSink for FullDisk {
        fn append(&self, _: &Arc<Event>) -> Result<(), RecordError> {
            if self.0.load(Ordering::Relaxed) { Err(RecordError::new("disk full")) } else { Ok(()) }
        }

        fn stream(&self, _: &Arc<Event>) {}
    }

    fn turn(turn: u32) -> EventBody {
        EventBody::TurnStarted { turn }
    }

    #[test]
    fn durable_events_have_no_gaps_across_a_tree() {
        let sink = Arc::new(MemorySink::default());
        let root = Recorder::new("r", sink.clone(), Arc::new(ManualClock::default()));
        let child = root.child("c", "digger");
        let progress =
            || EventBody::ToolCallProgress { tool_name: "t".into(), update: Progress::default() };
        root.record(None, turn(1)).unwrap();
        child.record(None, progress()).unwrap();
        child.record(None, progress()).unwrap();
        child.record(None, turn(1)).unwrap();
        root.record(None, progress()).unwrap();

        let events = sink.events();
        let positions: Vec<Position> = events.iter().map(|event| event.position).collect();
        assert_eq!(
            positions,
            [
                Position::Durable { seq: 1 },
                Position::Ephemeral { after: 1, index: 0 },
                Position::Ephemeral { after: 1, index: 1 },
                Position::Durable { seq: 2 },
                Position::Ephemeral { after: 2, index: 0 },
            ]
        );
        assert_eq!(events[3].parent, Some(RunId::new("r")));
        assert_eq!(events[3].agent.as_str(), "main/digger");
    }

    const TOKEN: &str = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";

    fn said(events: &[Arc<Event>]) -> String {
        let text = |event: &Arc<Event>| match &event.body {
            EventBody::ModelDelta { text } => text.clone(),
            EventBody::ToolCallProgress { update, .. } => update.text.clone().unwrap_or_default(),
            _ => String::new(),
        };
        events.iter().map(text).collect()
    }

    fn hiding_recorder() -> (Arc<MemorySink>, Recorder) {
        let sink = Arc::new(MemorySink::default());
        let recorder = Recorder::new("r", sink.clone(), Arc::new(ManualClock::default()))
            .hiding(Secrets::new([("KEY", "0123-4567-89ab")]));
        (sink, recorder)
    }

    #[test]
    fn a_secret_in_pieces_is_hidden_and_the_rest_comes_before_the_end() {
        let (sink, recorder) = hiding_recorder();
        let answer = format!("It is {TOKEN}, or 0123-4567-89ab; or gh");
        for piece in answer.as_bytes().chunks(5) {
            let text = String::from_utf8(piece.to_vec()).unwrap();
            recorder.record(None, EventBody::ModelDelta { text: text.clone() }).unwrap();
            recorder.record(None, EventBody::ModelThought { text }).unwrap();
        }
        let shown = said(&sink.events());
        assert!(shown.starts_with("It is [secret github_token "), "{shown}");
        assert!(shown.ends_with(", or [secret KEY]; or "), "{shown}");
        recorder.record(None, turn(1)).unwrap();
        assert!(said(&sink.events()).ends_with("; or "), "another event ends no text");
        let ended = EventBody::ModelRetry {
            attempt: 2,
            delay_ms: convoke_core::Millis::default(),
            reason: "broken".into(),
            usage: convoke_core::Usage::default(),
        };
        recorder.record(None, ended).unwrap();
        let events = sink.events();
        assert!(said(&events).ends_with("; or gh"));
        assert!(matches!(events.last().unwrap().body, EventBody::ModelRetry { .. }));
        let all = serde_json::to_string(&events).unwrap();
        assert!(!all.contains("ghp_0a") && !all.contains("89ab"), "{all}");
        assert_eq!(all.matches("[secret KEY]").count(), 2);
    }

    #[test]
    fn the_output_of_each_call_is_a_text_of_its_own() {
        let (sink, recorder) = hiding_recorder();
        let progress = |call: &str, text: &str, fraction| {
            let update = Progress { text: Some(text.into()), fraction };
            let body = EventBody::ToolCallProgress { tool_name: "t".into(), update };
            recorder.record(Some(&CallId::new(call)), body).unwrap();
        };
        progress("a", "a: 0123-", None);
        progress("b", "b: 4567-89ab.", None);
        progress("a", "4567-89ab", Some(0.5));
        progress("a", "0123-", Some(0.75));
        let texts = said(&sink.events());
        assert_eq!(texts, "a: b: 4567-89ab.[secret KEY]");
        let last = sink.events().last().unwrap().body.clone();
        let EventBody::ToolCallProgress { update, .. } = last else { panic!("{last:?}") };
        assert_eq!(update, Progress { text: None, fraction: Some(0.75) });
        let denied = EventBody::ToolCallDenied {
            tool_name: "t".into(),
            error: convoke_core::ToolError::permission("no"),
            content: vec![],
            duration_ms: convoke_core::Millis::default(),
        };
        recorder.record(Some(&CallId::new("b")), denied.clone()).unwrap();
        assert_eq!(said(&sink.events()), texts, "b had nothing held back");
        recorder.record(Some(&CallId::new("a")), denied).unwrap();
        assert_eq!(said(&sink.events()), format!("{texts}0123-"));
    }

    #[test]
    fn a_stream_that_lost_an_event_takes_no_more() {
        let sink = Arc::new(FullDisk::default());
        let recorder = Recorder::new("r", sink.clone(), Arc::new(ManualClock::default()));
        recorder.record(None, turn(1)).unwrap();
        sink.0.store(true, Ordering::Relaxed);
        assert!(recorder.record(None, turn(2)).is_err());
        sink.0.store(false, Ordering::Relaxed);
        assert_eq!(&*recorder.record(None, turn(3)).unwrap_err().reason, "disk full");
    }
}
