//! What a call says while it runs, shown while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use convoke_core::event::Progress;
use convoke_core::{Event, EventBody};
use convoke_tool::{EventSink, MAX_STREAMED_BYTES, RecordError};

use crate::output::Stream;

/// Shows the progress of a call, if anybody looks.
#[derive(Debug)]
pub(super) struct Live {
    stream: Option<Stream>,
    /// Whether what the tool says is its output, as with programs, or news about it.
    is_output: bool,
    bytes: AtomicUsize,
    in_line: AtomicBool,
}

impl Live {
    pub(super) fn new(stream: Option<Stream>, is_output: bool) -> Self {
        Self { stream, is_output, bytes: AtomicUsize::new(0), in_line: AtomicBool::new(false) }
    }

    /// Tells whether the output of the call has been shown already, all of it.
    pub(super) fn showed_output(&self) -> bool {
        self.is_output && (1..=MAX_STREAMED_BYTES).contains(&self.bytes.load(Ordering::Relaxed))
    }

    /// Ends the last line, if it was left open.
    pub(super) fn finish(&self) {
        if let (Some(stream), true) = (&self.stream, self.in_line.swap(false, Ordering::Relaxed)) {
            stream.gap();
        }
    }

    fn show(&self, update: &Progress) {
        let Some(stream) = &self.stream else { return };
        let text = update.text.as_deref().unwrap_or_default();
        if let Some(fraction) = update.fraction {
            self.finish();
            let line = format!("{:3.0}% {}", fraction * 100.0, stream.printable(text.trim_end()));
            stream.line(line.trim_end());
        } else if text.is_empty() {
            return;
        } else {
            stream.text(stream.printable(text));
            self.in_line.store(!text.ends_with('\n'), Ordering::Relaxed);
        }
        stream.flush();
        self.bytes.fetch_add(text.len(), Ordering::Relaxed);
    }
}

impl EventSink for Live {
    fn append(&self, _: &Arc<Event>) -> Result<(), RecordError> {
        Ok(())
    }

    fn stream(&self, event: &Arc<Event>) {
        if let EventBody::ToolCallProgress { update, .. } = &event.body {
            self.show(update);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(text: &str) -> Progress {
        Progress { text: Some(text.into()), fraction: None }
    }

    #[test]
    fn text_is_shown_as_it_comes_and_counts_as_shown() {
        let stream = Stream::on_terminal(80);
        let live = Live::new(Some(stream.clone()), true);
        assert!(!live.showed_output());
        live.show(&update("one\ntwo"));
        live.show(&Progress { text: Some("half".into()), fraction: Some(0.5) });
        live.finish();
        assert_eq!(stream.contents(), "one\ntwo\n 50% half\n");
        assert!(live.showed_output());
    }

    /// Bug: how far a call is was not shown where it said nothing else.
    #[test]
    fn how_far_a_call_is_needs_no_words() {
        let stream = Stream::on_terminal(80);
        let live = Live::new(Some(stream.clone()), false);
        live.show(&Progress { text: None, fraction: Some(0.1) });
        live.show(&Progress { text: None, fraction: None });
        live.show(&Progress { text: None, fraction: Some(1.0) });
        assert_eq!(stream.contents(), " 10%\n100%\n");
    }

    #[test]
    fn nobody_looks_so_nothing_was_shown() {
        let live = Live::new(None, true);
        live.show(&update("text"));
        assert!(!live.showed_output());
    }
}
