//! What a running call tells its client, at a pace a client can follow.
//!
//! A call never waits for its client: what it says is put together until the client takes it, and
//! bounded. On the wire every number is larger than the one before, as the protocol wants it.

use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::event::Progress;
use convoke_tool::floor_char_boundary;
use tokio::sync::Notify;

/// How much of what a call says waits for its client.
const MAX_WAITING_BYTES: usize = 8 * 1024;
const CUT: &str = "[…]";

/// Takes what a call tells about itself. Cheap to clone; never waits.
#[derive(Clone, Debug, Default)]
pub struct ProgressSink(Arc<Slot>);

#[derive(Debug, Default)]
struct Slot {
    waiting: Mutex<Option<Progress>>,
    news: Notify,
}

impl ProgressSink {
    /// Tells something. What was told before and not yet taken is told with it.
    pub fn send(&self, update: Progress) {
        let mut slot = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = slot.get_or_insert_default();
        if let Some(text) = update.text {
            let so_far = waiting.text.get_or_insert_default();
            // A note is a line of its own; output goes on where it was.
            if update.fraction.is_some() && !so_far.is_empty() && !so_far.ends_with('\n') {
                so_far.push('\n');
            }
            so_far.push_str(&text);
            keep_the_end(so_far);
        }
        waiting.fraction = update.fraction.or(waiting.fraction);
        drop(slot);
        self.0.news.notify_one();
    }

    /// Waits for news and takes them.
    pub(super) async fn next(&self) -> Progress {
        loop {
            if let Some(update) = self.take() {
                return update;
            }
            self.0.news.notified().await;
        }
    }

    /// Takes what was not yet taken.
    pub(super) fn take(&self) -> Option<Progress> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn keep_the_end(text: &mut String) {
    if text.len() > MAX_WAITING_BYTES {
        let cut = floor_char_boundary(text, text.len() - MAX_WAITING_BYTES / 2);
        text.replace_range(..cut, CUT);
    }
}

/// One notification's worth.
#[derive(Debug, PartialEq)]
pub(super) struct Step {
    pub(super) progress: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

/// Turns updates into steps whose numbers grow.
///
/// A call whose first word is a fraction counts to 100. Any other call counts its words, and a
/// fraction that comes later is part of the message.
#[derive(Debug, Default)]
pub(super) struct Steps {
    last: Option<f64>,
    counts_to: Option<f64>,
}

impl Steps {
    /// Returns the next step; none where there is nothing that a client could be told.
    pub(super) fn next(&mut self, update: &Progress) -> Option<Step> {
        const HUNDRED: f64 = 100.0;
        let fraction = update.fraction.filter(|fraction| fraction.is_finite());
        let message = update.text.as_deref().map(str::trim_end).filter(|text| !text.is_empty());
        if self.last.is_none() && fraction.is_some() {
            self.counts_to = Some(HUNDRED);
        }
        let (progress, message) = match (self.counts_to, fraction) {
            (Some(total), Some(fraction)) => {
                let wanted = fraction.clamp(0.0, 1.0) * total;
                (
                    self.last.map_or(wanted, |last| wanted.max(last.next_up())),
                    message.map(Into::into),
                )
            }
            (Some(_), None) => (self.last.map_or(0.0, f64::next_up), Some(message?.to_owned())),
            (None, Some(fraction)) => {
                let percent = format!("{:.0} %", fraction.clamp(0.0, 1.0) * HUNDRED);
                let message = message.map_or(percent.clone(), |text| format!("{percent}: {text}"));
                (self.last.unwrap_or(0.0) + 1.0, Some(message))
            }
            (None, None) => (self.last.unwrap_or(0.0) + 1.0, Some(message?.to_owned())),
        };
        if self.counts_to.is_some_and(|total| progress > total) {
            return None;
        }
        self.last = Some(progress);
        Some(Step { progress, total: self.counts_to, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Progress {
        Progress { text: Some(text.into()), fraction: None }
    }

    fn fraction(fraction: f64, note: &str) -> Progress {
        Progress { text: Some(note.into()), fraction: Some(fraction) }
    }

    #[test]
    fn fractions_count_to_a_hundred_and_words_between_them_still_grow() {
        let mut steps = Steps::default();
        let told = [
            fraction(0.0, ""),
            text("opened\n"),
            fraction(0.5, "half"),
            fraction(0.5, "still half"),
            fraction(0.25, "back?"),
            fraction(1.0, "done"),
        ];
        let steps: Vec<Step> = told.into_iter().filter_map(|told| steps.next(&told)).collect();
        assert_eq!(steps.len(), 6);
        assert_eq!((steps[0].progress, steps[0].total), (0.0, Some(100.0)));
        assert_eq!(steps[0].message, None);
        assert_eq!((steps[2].progress, steps[5].progress), (50.0, 100.0));
        assert!(steps.array_windows().all(|[one, next]| one.progress < next.progress), "{steps:?}");
    }

    #[test]
    fn words_are_counted_and_later_fractions_are_words() {
        let mut steps = Steps::default();
        assert_eq!(steps.next(&text("\n")), None);
        assert_eq!(steps.next(&fraction(f64::NAN, "")), None, "there is no such number in JSON");
        let step = |progress, message: &str| {
            Some(Step { progress, total: None, message: Some(message.into()) })
        };
        assert_eq!(steps.next(&text("one\n")), step(1.0, "one"));
        assert_eq!(steps.next(&fraction(0.3, "two")), step(2.0, "30 %: two"));
        assert_eq!(steps.next(&text("three")), step(3.0, "three"));
    }

    #[tokio::test]
    async fn what_nobody_takes_is_put_together_and_bounded() {
        let sink = ProgressSink::default();
        sink.send(text("a"));
        sink.send(fraction(0.5, "b"));
        sink.send(text("c"));
        assert_eq!(sink.next().await, fraction(0.5, "a\nbc"));
        assert_eq!(sink.take(), None);
        for _ in 0..10_000 {
            sink.send(text("0123456789"));
        }
        let kept = sink.take().unwrap().text.unwrap();
        assert!(kept.len() <= MAX_WAITING_BYTES && kept.starts_with(CUT), "{}", kept.len());
    }
}
