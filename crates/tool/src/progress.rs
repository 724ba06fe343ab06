//! What a running call tells about itself.
//!
//! Updates are streamed as ephemeral events, with a limit a call. The last of the text is also kept,
//! so that a call that is cut off still leaves behind what it had said.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::event::Progress;
use convoke_core::{CallId, EventBody};

use crate::executor::Entered;
use crate::record::Recorder;
use crate::truncate::floor_char_boundary;

/// How many bytes of live output one call may show.
pub const MAX_STREAMED_BYTES: usize = 1024 * 1024;
const MAX_UPDATES: usize = 10_000;
const KEPT_TAIL_BYTES: usize = 16 * 1024;
const LIMIT_NOTE: &str = "\n[live output ends here: its limit is reached; the call goes on]\n";

/// Sends updates of one call. Cheap to clone.
#[derive(Clone)]
pub struct ProgressSender(Arc<Inner>);

struct Inner {
    target: Option<Target>,
    told: Mutex<Told>,
}

/// Where updates go.
struct Target {
    recorder: Recorder,
    call: CallId,
    tool_name: String,
    /// What they must not repeat.
    entered: Arc<Entered>,
}

#[derive(Default)]
struct Told {
    updates: usize,
    bytes: usize,
    ended: bool,
    tail: String,
}

impl ProgressSender {
    pub(crate) fn new(
        recorder: Recorder,
        call: CallId,
        tool_name: String,
        entered: Arc<Entered>,
    ) -> Self {
        let target = Some(Target { recorder, call, tool_name, entered });
        Self(Arc::new(Inner { target, told: Mutex::default() }))
    }

    /// Makes a sender that nobody listens to.
    pub fn silent() -> Self {
        Self(Arc::new(Inner { target: None, told: Mutex::default() }))
    }

    /// Shows a piece of output.
    pub fn text(&self, text: impl Into<String>) {
        self.send(Progress { text: Some(text.into()), fraction: None });
    }

    /// Shows how much is done, from 0 to 1.
    pub fn fraction(&self, fraction: f64, note: impl Into<String>) {
        self.send(Progress { text: Some(note.into()), fraction: Some(fraction.clamp(0.0, 1.0)) });
    }

    /// Returns the last of what was said.
    pub(crate) fn tail(&self) -> String {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner).tail.clone()
    }

    fn send(&self, mut update: Progress) {
        let mut told = self.0.told.lock().unwrap_or_else(PoisonError::into_inner);
        let text = update.text.as_deref().unwrap_or_default();
        told.remember(text);
        if told.ended {
            return;
        }
        told.updates += 1;
        told.bytes += text.len();
        if told.updates > MAX_UPDATES || told.bytes > MAX_STREAMED_BYTES {
            told.ended = true;
            update = Progress { text: Some(LIMIT_NOTE.into()), fraction: None };
        }
        drop(told);
        if let Some(Target { recorder, call, tool_name, entered }) = &self.0.target {
            if let Some(text) = &mut update.text {
                entered.hide_in_text(call, text);
            }
            let body = EventBody::ToolCallProgress { tool_name: tool_name.clone(), update };
            // Ephemeral events are shown if they can be; there is no failure to handle.
            drop(recorder.record(Some(call), body));
        }
    }
}

impl Told {
    fn remember(&mut self, text: &str) {
        self.tail.push_str(text);
        if self.tail.len() > 2 * KEPT_TAIL_BYTES {
            let cut = floor_char_boundary(&self.tail, self.tail.len() - KEPT_TAIL_BYTES);
            self.tail.drain(..cut);
        }
    }
}

impl fmt::Debug for ProgressSender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ProgressSender").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::record::MemorySink;

    #[test]
    fn a_call_that_says_too_much_is_cut_once_and_its_tail_is_kept() {
        let sink = Arc::new(MemorySink::default());
        let recorder = Recorder::new("r", sink.clone(), Arc::new(ManualClock::default()));
        let progress =
            ProgressSender::new(recorder, CallId::new("c"), "loud".into(), Arc::default());
        for number in 0..MAX_UPDATES + 500 {
            progress.text(format!("line {number}\n"));
        }
        assert_eq!(sink.events().len(), MAX_UPDATES + 1);
        assert!(progress.tail().ends_with("line 10499\n"));
        assert!(progress.tail().len() <= 2 * KEPT_TAIL_BYTES);
    }
}
