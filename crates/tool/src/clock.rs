//! Wall time, handed in. The only module that asks the operating system what time it is.
//!
//! Wall time jumps: a user or a time server sets it, a machine is restored or suspended. What is recorded while a
//! process works on a run is therefore stamped by a [`SteadyClock`], and only the time between two processes is a
//! difference of wall times.

use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use convoke_core::Timestamp;
use tokio::time::Instant;

/// Says what time it is.
///
/// Durations and deadlines do not come from here but from tokio's clock, which tests can pause.
pub trait Clock: Send + Sync + Debug {
    /// Returns the current wall time.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that others are given")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::default().after(since_epoch)
    }
}

/// A clock that starts at a moment of wall time and from then on follows monotonic time.
///
/// Setting the machine's clock moves it neither forward nor back, and it stands still while the machine is suspended.
#[derive(Clone, Copy, Debug)]
pub struct SteadyClock {
    start: Timestamp,
    started: Instant,
}

impl SteadyClock {
    /// Makes a clock that shows `start` now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, started: Instant::now() }
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        self.start.after(self.started.elapsed())
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Makes a clock that shows `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_millis()))
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::Relaxed);
    }

    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn steady_clock_ignores_the_wall_clock_it_started_from() {
        const DAY: i64 = 86_400_000;
        for jump in [-DAY, DAY] {
            let wall = ManualClock::new(Timestamp::from_millis(10 * DAY));
            let steady = SteadyClock::starting_at(wall.now());
            wall.set(Timestamp::from_millis(10 * DAY + jump));
            tokio::time::advance(Duration::from_secs(5)).await;
            assert_eq!(steady.now(), Timestamp::from_millis(10 * DAY + 5_000));
        }
    }
}
