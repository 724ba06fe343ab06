//! An answer that is being read: how long each piece of it may take, how much of it there may be, and what
//! of it had come if it breaks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use super::{Phase, never_began, not_understood};
use crate::endpoint::Endpoint;
use crate::error::{ModelError, ModelErrorKind};
use crate::gate::Pass;
use crate::model::{Answer, Chunk};
use crate::retry::seconds;
use crate::sse::{SseEvent, SseParser};
use crate::transport::{Timeouts, Transport};
use crate::wire::{Complaint, Decoder};

/// How long the rest of a stream may take, in all, once the answer is whole: what was used may follow, and
/// some servers never close.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// How long the end of a stream may take once nothing follows: a connection that has ended its answer can
/// be used again, but that is not worth a wait.
const CLOSE_PATIENCE: Duration = Duration::from_millis(50);
/// How many calls an answer may hold before it is given up. Whoever asked takes fewer, and says so; this is more
/// than any model means.
const MOST_CALLS: usize = 1_024;
/// How much is shown of an answer that is not what was asked for.
const BEGINNING: usize = 200;

/// An answer that is being read.
pub(super) struct Reading {
    endpoint: Arc<Endpoint>,
    timeouts: Timeouts,
    /// Until when the answer has to begin.
    begin_by: Instant,
    /// Until when the stream has to end, once the answer is whole.
    end_by: Option<Instant>,
    /// How much of the stream may still come.
    bytes_left: u64,
    response: Response,
    pass: Pass,
    events: SseParser,
    decoder: Box<dyn Decoder>,
    ready: VecDeque<Chunk>,
    /// What ends the answer once everything before it was handed out.
    failed: Option<ModelError>,
    /// The first bytes, to show if nothing in them is an event.
    beginning: Vec<u8>,
    /// Whether there was an event.
    understood: bool,
    /// How many bytes of text and thoughts have come.
    shown_bytes: usize,
    /// How many calls were begun.
    calls: usize,
}

/// Returns the time after a wait; one that is too long to be told is as good as for ever.
pub(super) fn after(wait: Duration) -> Instant {
    const FOR_EVER: Duration = Duration::from_hours(24 * 365);
    let now = Instant::now();
    now.checked_add(wait).unwrap_or_else(|| now + FOR_EVER)
}

impl Reading {
    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        transport: &Transport,
        response: Response,
        pass: Pass,
        begin_by: Instant,
    ) -> Self {
        Self {
            timeouts: transport.timeouts(),
            begin_by,
            end_by: None,
            bytes_left: transport.longest_answer(),
            response,
            pass,
            events: SseParser::new(),
            decoder: endpoint.wire.decoder(),
            endpoint,
            ready: VecDeque::new(),
            failed: None,
            beginning: Vec::new(),
            understood: false,
            shown_bytes: 0,
            calls: 0,
        }
    }

    /// Returns the next piece of the answer, or how it ended, and what comes after that.
    pub(super) async fn step(mut self: Box<Self>) -> (Result<Chunk, ModelError>, Phase) {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return (Ok(chunk), Phase::Reading(self));
            }
            if let Some(error) = self.failed.take() {
                return (Err(error), Phase::Over);
            }
            match self.read().await {
                Ok(true) => {}
                Ok(false) => return (self.finish(), Phase::Over),
                Err(error) => return (Err(error.after_receiving(self.received())), Phase::Over),
            }
        }
    }

    /// Reads a piece; returns whether there may be more.
    async fn read(&mut self) -> Result<bool, ModelError> {
        let piece = match self.next_piece().await {
            Ok(piece) => piece,
            // The answer is whole: how the connection ends does not matter any more.
            Err(_) if self.decoder.is_complete() => None,
            Err(error) => return Err(error),
        };
        let mut events = Vec::new();
        match &piece {
            Some(bytes) => {
                let room = BEGINNING.saturating_sub(self.beginning.len());
                self.beginning.extend(bytes.iter().take(room));
                self.events.feed(bytes, &mut events).map_err(|error| {
                    self.endpoint.error(ModelErrorKind::Malformed, error.to_string())
                })?;
            }
            None => events.extend(self.events.finish()),
        }
        self.decode(&events);
        Ok(piece.is_some() || !self.ready.is_empty() || self.failed.is_some())
    }

    /// Waits for a piece as long as the state of the answer allows.
    async fn next_piece(&mut self) -> Result<Option<Bytes>, ModelError> {
        let has_begun = !self.beginning.is_empty();
        let until = if self.decoder.is_complete() {
            let patience = END_PATIENCE.min(self.timeouts.idle);
            let end_by = *self.end_by.get_or_insert_with(|| after(patience));
            if self.decoder.is_over() { end_by.min(after(CLOSE_PATIENCE)) } else { end_by }
        } else if has_begun {
            after(self.timeouts.idle)
        } else {
            self.begin_by
        };
        match timeout_at(until, self.response.chunk()).await {
            Ok(Ok(piece)) => {
                self.count(piece.as_ref().map_or(0, Bytes::len))?;
                Ok(piece)
            }
            Ok(Err(error)) => {
                let mut error = self.endpoint.fail(error);
                error.kind = ModelErrorKind::Cut;
                Err(error)
            }
            Err(_) if has_begun => {
                let (place, idle) = (self.endpoint.place(), seconds(self.timeouts.idle));
                let message = format!("{place} said nothing more for {idle}");
                Err(self.endpoint.error(ModelErrorKind::Silent, message))
            }
            Err(_) => Err(never_began(&self.endpoint, self.timeouts.first_byte)),
        }
    }

    /// Counts what came, and refuses what is too much of it.
    fn count(&mut self, bytes: usize) -> Result<(), ModelError> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => Err(self.endpoint.error(
                ModelErrorKind::Malformed,
                "the answer is longer than anything a model says, and was given up",
            )),
        }
    }

    fn decode(&mut self, events: &[SseEvent]) {
        self.understood |= !events.is_empty();
        let mut chunks = Vec::new();
        let mut complaint = None;
        for event in events {
            complaint = self.decoder.event(event.name.as_deref(), &event.data, &mut chunks).err();
            if complaint.is_some() {
                break;
            }
        }
        for chunk in &chunks {
            match chunk {
                Chunk::Text(text) | Chunk::Thought(text) => self.shown_bytes += text.len(),
                Chunk::ToolCall { .. } => self.calls += 1,
                Chunk::Retry(_) | Chunk::End(_) => {}
            }
        }
        self.ready.extend(chunks);
        if let Some(complaint) = complaint {
            self.complain(complaint);
        } else if self.calls > MOST_CALLS {
            self.failed = Some(too_many_calls(&self.endpoint).after_receiving(self.received()));
        }
    }

    fn complain(&mut self, complaint: Complaint) {
        if complaint.kind == ModelErrorKind::RateLimited {
            self.pass.refused(None);
        }
        let is_refusal = complaint.kind.is_passing();
        let error = self.endpoint.complain(complaint);
        let received = self.received();
        // A provider that says at once that it cannot answer bills nothing.
        let is_free = is_refusal && received == 0;
        self.failed = Some(if is_free { error } else { error.after_receiving(received) });
    }

    /// Returns how many bytes of the answer have come.
    fn received(&self) -> u64 {
        let bytes = self.shown_bytes.saturating_add(self.decoder.call_bytes());
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    fn finish(self: Box<Self>) -> Result<Chunk, ModelError> {
        let received = self.received();
        let finished = self.into_answer();
        finished.map(Chunk::End).map_err(|error| error.after_receiving(received))
    }

    fn into_answer(self: Box<Self>) -> Result<Answer, ModelError> {
        let Self { endpoint, decoder, beginning, understood, .. } = *self;
        if decoder.is_complete() {
            let answer = decoder.finish().map_err(|complaint| endpoint.complain(complaint))?;
            // Not every call has a name by which it was counted.
            let too_many = answer.message.calls().nth(MOST_CALLS).is_some();
            return if too_many { Err(too_many_calls(&endpoint)) } else { Ok(answer) };
        }
        if !understood && !beginning.is_empty() {
            return Err(not_understood(&endpoint, &beginning));
        }
        let place = endpoint.place();
        let message = format!("{place} ended the answer before it was whole");
        Err(endpoint.error(ModelErrorKind::Cut, message))
    }
}

fn too_many_calls(endpoint: &Endpoint) -> ModelError {
    let message = format!("the answer holds more than {MOST_CALLS} calls, and was given up");
    endpoint.error(ModelErrorKind::Malformed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_without_an_end_is_no_trouble() {
        assert!(after(Duration::MAX) > after(Duration::from_hours(1)));
        assert_eq!(after(Duration::from_secs(1)), Instant::now() + Duration::from_secs(1));
    }
}
