//! When a server that failed may be tried again.
//!
//! The first failure costs nothing: the next use tries at once. From the second in a row on there is a
//! wait that doubles, up to a minute, and is shortened by chance so that what failed together does not
//! come back together.

use std::time::Duration;

use tokio::time::Instant;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// A server that was ready for this long had not failed to start.
pub(super) const STEADY: Duration = Duration::from_secs(10);

/// How a server has fared lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    not_before: Option<Instant>,
}

impl Backoff {
    /// It failed once more.
    pub(super) fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        let longest = longest_wait(self.failures);
        self.not_before = (longest > Duration::ZERO)
            .then(|| Instant::now() + longest.mul_f64(0.5 + fastrand::f64() / 2.0));
    }

    /// It worked.
    pub(super) fn worked(&mut self) {
        *self = Self::default();
    }

    /// Returns how long it must be left alone from now on.
    pub(super) fn wait(&self) -> Duration {
        self.not_before.map_or(Duration::ZERO, |then| then.duration_since(Instant::now()))
    }
}

fn longest_wait(failures: u32) -> Duration {
    match failures.checked_sub(2) {
        None => Duration::ZERO,
        Some(doublings) => FIRST_WAIT.saturating_mul(1 << doublings.min(10)).min(LONGEST_WAIT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute() {
        let seconds: Vec<u64> = (1..=10).map(|count| longest_wait(count).as_secs()).collect();
        assert_eq!(seconds, [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(longest_wait(u32::MAX), LONGEST_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn chance_shortens_a_wait_by_half_at_most_and_success_ends_it() {
        let mut backoff = Backoff::default();
        backoff.failed();
        assert_eq!(backoff.wait(), Duration::ZERO);
        backoff.failed();
        backoff.failed();
        let wait = backoff.wait();
        assert!(wait >= Duration::from_secs(1) && wait <= Duration::from_secs(2), "{wait:?}");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(backoff.wait(), Duration::ZERO);
        backoff.failed();
        backoff.worked();
        assert_eq!(backoff.wait(), Duration::ZERO);
    }
}
