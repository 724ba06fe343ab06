//! Counts the time of a run: not while there is nothing but a person to wait for, and not while nobody works
//! on the run. A call that runs beside an open question takes time like any other.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::CallId;
use crate::time::Timestamp;

/// Counts the time that a run works, event by event.
///
/// A gap between two events counts at most once and never less than zero: a journal whose times go back, because a
/// process took it up whose clock was behind, loses that gap and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Stopwatch {
    worked_ms: i64,
    /// The time of the last event.
    last: Timestamp,
    /// The questions that are open.
    open: BTreeSet<CallId>,
    /// The calls that run.
    running: BTreeSet<CallId>,
}

impl Stopwatch {
    /// Starts to count.
    pub(super) fn start(now: Timestamp) -> Self {
        Self { last: now, ..Self::default() }
    }

    /// Counts the time from the last event to this one, before the event changes anything.
    pub(super) fn tick(&mut self, now: Timestamp) {
        self.worked_ms = self.until(now);
        self.last = now;
    }

    pub(super) fn ask(&mut self, call: &CallId) {
        self.open.insert(call.clone());
    }

    /// Nobody is asked about a call any more.
    pub(super) fn answer(&mut self, call: &CallId) {
        self.open.remove(call);
    }

    pub(super) fn begin(&mut self, call: &CallId) {
        self.running.insert(call.clone());
    }

    /// A call that runs has nothing but a person to wait for.
    pub(super) fn pause(&mut self, call: &CallId) {
        if self.running.remove(call) {
            self.open.insert(call.clone());
        }
    }

    /// A call that had to wait works again.
    pub(super) fn go_on(&mut self, call: &CallId) {
        if self.open.remove(call) {
            self.running.insert(call.clone());
        }
    }

    pub(super) fn end(&mut self, call: &CallId) {
        self.open.remove(call);
        self.running.remove(call);
    }

    /// Nothing was done since the last event: that time does not count. Questions have to be asked again.
    pub(super) fn resume(&mut self, now: Timestamp) {
        self.last = now;
        self.open.clear();
        self.running.clear();
    }

    /// Tells whether there is nothing but a person to wait for.
    pub(super) fn only_waits(&self) -> bool {
        !self.open.is_empty() && self.running.is_empty()
    }

    pub(super) fn elapsed(&self, now: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.until(now)).unwrap_or_default())
    }

    /// Returns the time that the run had worked at its last event.
    pub(super) fn worked(&self) -> Duration {
        self.elapsed(self.last)
    }

    fn until(&self, now: Timestamp) -> i64 {
        let since = now.as_millis().saturating_sub(self.last.as_millis());
        let counts = if self.only_waits() { 0 } else { since.max(0) };
        self.worked_ms.saturating_add(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Folds one event: the time to it is counted, then it changes something.
    fn event(watch: &mut Stopwatch, millis: i64, change: impl FnOnce(&mut Stopwatch)) {
        watch.tick(at(millis));
        change(watch);
    }

    #[test]
    fn time_stands_still_while_a_call_that_runs_waits_for_a_person() {
        let (asks, works) = (CallId::new("a"), CallId::new("b"));
        let mut watch = Stopwatch::start(at(0));
        event(&mut watch, 0, |watch| watch.begin(&asks));
        event(&mut watch, 1_000, |watch| watch.pause(&asks));
        assert!(watch.only_waits());
        event(&mut watch, 9_000, |watch| watch.go_on(&asks));
        assert_eq!(watch.elapsed(at(10_000)), Duration::from_secs(2));
        event(&mut watch, 10_000, |watch| watch.begin(&works));
        event(&mut watch, 11_000, |watch| watch.pause(&asks));
        assert!(!watch.only_waits(), "something runs beside the question");
        event(&mut watch, 12_000, |watch| watch.end(&works));
        event(&mut watch, 20_000, |watch| watch.end(&asks));
        assert_eq!(watch.elapsed(at(20_000)), Duration::from_secs(4));
    }

    #[test]
    fn time_stands_still_only_while_everybody_waits() {
        let (asked, runs) = (CallId::new("a"), CallId::new("b"));
        let mut watch = Stopwatch::start(at(0));
        event(&mut watch, 100, |watch| watch.begin(&runs));
        event(&mut watch, 200, |watch| watch.ask(&asked));
        assert!(!watch.only_waits(), "something runs beside the question");
        event(&mut watch, 1_000, |watch| watch.end(&runs));
        assert!(watch.only_waits());
        assert_eq!(watch.elapsed(at(9_000)), Duration::from_secs(1));
        event(&mut watch, 5_000, |watch| watch.answer(&asked));
        assert_eq!(watch.elapsed(at(5_500)), Duration::from_millis(1_500));
    }

    #[test]
    fn stopwatch_with_a_clock_that_jumps_counts_the_time_on_both_sides() {
        const DAY: i64 = 86_400_000;
        for jump in [-DAY, -1_000, 1_000, DAY] {
            let mut watch = Stopwatch::start(at(2 * DAY));
            event(&mut watch, 2 * DAY + 3_000, |_| {});
            let taken_up = 2 * DAY + 3_000 + jump;
            watch.resume(at(taken_up));
            assert_eq!(watch.elapsed(at(taken_up)), Duration::from_secs(3), "{jump}");
            event(&mut watch, taken_up + 2_000, |_| {});
            assert_eq!(watch.elapsed(at(taken_up + 2_500)), Duration::from_millis(5_500), "{jump}");
        }
        // Old journals have times that go back within a process.
        let mut watch = Stopwatch::start(at(DAY));
        event(&mut watch, DAY + 3_000, |_| {});
        event(&mut watch, 0, |_| {});
        event(&mut watch, 2_000, |_| {});
        assert_eq!(watch.worked(), Duration::from_secs(5));
    }
}
