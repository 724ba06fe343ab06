//! Counts the time of a run: not while there is nothing but a person to wait for, and not while nobody works
//! on the run. A call that runs beside an open question takes time like any other.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::CallId;
use crate::time::Timestamp;

/// Counts time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Stopwatch {
    pub(super) started: Timestamp,
    waited_ms: i64,
    /// When something last happened.
    pub(super) last: Timestamp,
    /// The questions that are open.
    open: BTreeSet<CallId>,
    /// The calls that run.
    running: BTreeSet<CallId>,
    /// Since when there is nothing but a person to wait for.
    since: Option<Timestamp>,
}

impl Stopwatch {
    /// Starts to count.
    pub(super) fn start(now: Timestamp) -> Self {
        Self { started: now, ..Self::default() }
    }

    pub(super) fn ask(&mut self, call: &CallId, now: Timestamp) {
        self.open.insert(call.clone());
        self.look(now);
    }

    /// Nobody is asked about a call any more.
    pub(super) fn answer(&mut self, call: &CallId, now: Timestamp) {
        self.open.remove(call);
        self.look(now);
    }

    pub(super) fn begin(&mut self, call: &CallId, now: Timestamp) {
        self.running.insert(call.clone());
        self.look(now);
    }

    /// A call that runs has nothing but a person to wait for.
    pub(super) fn pause(&mut self, call: &CallId, now: Timestamp) {
        if self.running.remove(call) {
            self.open.insert(call.clone());
            self.look(now);
        }
    }

    /// A call that had to wait works again.
    pub(super) fn go_on(&mut self, call: &CallId, now: Timestamp) {
        if self.open.remove(call) {
            self.running.insert(call.clone());
            self.look(now);
        }
    }

    pub(super) fn end(&mut self, call: &CallId, now: Timestamp) {
        self.open.remove(call);
        self.running.remove(call);
        self.look(now);
    }

    /// Nothing was done since the last event. Whoever was waited for has to be asked again.
    pub(super) fn resume(&mut self, now: Timestamp) {
        self.waited_ms += between(self.since.take().unwrap_or(self.last), now);
        self.open.clear();
        self.running.clear();
    }

    /// Tells whether there is nothing but a person to wait for.
    pub(super) const fn only_waits(&self) -> bool {
        self.since.is_some()
    }

    pub(super) fn elapsed(&self, now: Timestamp) -> Duration {
        let until = self.since.unwrap_or(now);
        let millis = until.as_millis() - self.started.as_millis() - self.waited_ms;
        Duration::from_millis(u64::try_from(millis).unwrap_or_default())
    }

    fn look(&mut self, now: Timestamp) {
        let waits = !self.open.is_empty() && self.running.is_empty();
        match self.since {
            None if waits => self.since = Some(now),
            Some(since) if !waits => {
                self.waited_ms += between(since, now);
                self.since = None;
            }
            _ => {}
        }
    }
}

fn between(from: Timestamp, to: Timestamp) -> i64 {
    (to.as_millis() - from.as_millis()).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_while_a_call_that_runs_waits_for_a_person() {
        let at = Timestamp::from_millis;
        let (asks, works) = (CallId::new("a"), CallId::new("b"));
        let mut watch = Stopwatch::start(at(0));
        watch.begin(&asks, at(0));
        watch.pause(&asks, at(1_000));
        assert!(watch.only_waits());
        watch.go_on(&asks, at(9_000));
        assert_eq!(watch.elapsed(at(10_000)), Duration::from_secs(2));
        watch.begin(&works, at(10_000));
        watch.pause(&asks, at(11_000));
        assert!(!watch.only_waits(), "something runs beside the question");
        watch.end(&works, at(12_000));
        watch.end(&asks, at(20_000));
        assert_eq!(watch.elapsed(at(20_000)), Duration::from_secs(4));
    }

    #[test]
    fn time_stands_still_only_while_everybody_waits() {
        let at = Timestamp::from_millis;
        let (asked, runs) = (CallId::new("a"), CallId::new("b"));
        let mut watch = Stopwatch::start(at(0));
        watch.begin(&runs, at(100));
        watch.ask(&asked, at(200));
        assert!(!watch.only_waits(), "something runs beside the question");
        watch.end(&runs, at(1_000));
        assert!(watch.only_waits());
        assert_eq!(watch.elapsed(at(9_000)), Duration::from_secs(1));
        watch.answer(&asked, at(5_000));
        assert_eq!(watch.elapsed(at(5_500)), Duration::from_millis(1_500));
    }
}
