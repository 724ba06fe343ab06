//! Time in which there is only a person to wait for. Meanwhile nobody is late.
//!
//! A call may have to know something that a person says, and a request may wait minutes for somebody to log
//! in. Neither is to blame for that, so the clocks stand still for as long as it takes.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The times in which only a person is waited for.
#[derive(Debug, Default)]
pub struct Interlude(watch::Sender<Waits>);

#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    under_way: usize,
    /// When the first of those under way began.
    since: Option<Instant>,
    /// How much time went into those that are over.
    spent: Duration,
}

impl Interlude {
    /// Says that a person is waited for, for as long as what is returned lives.
    pub fn begin(self: &Arc<Self>) -> Pause {
        self.0.send_modify(|waits| {
            waits.under_way += 1;
            waits.since.get_or_insert_with(Instant::now);
        });
        Pause(Arc::clone(self))
    }

    /// Tells whether a person is waited for.
    pub fn is_on(&self) -> bool {
        self.0.borrow().under_way > 0
    }

    /// Follows beginnings and ends from now on.
    pub fn follow(&self) -> Pauses {
        Pauses(self.0.subscribe())
    }

    /// Returns how much time went into waits that are over.
    pub fn spent(&self) -> Duration {
        self.0.borrow().spent
    }

    /// Returns how much time went into waits so far, with what is under way.
    pub fn spent_so_far(&self) -> Duration {
        let Waits { since, spent, .. } = *self.0.borrow();
        spent + since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Returns a deadline as it is after the waits there have been.
    pub fn after(&self, deadline: Instant) -> Instant {
        deadline + self.spent()
    }

    /// Does something before a deadline that moves on with every wait; `None` if it comes first.
    pub async fn within<T>(&self, deadline: Instant, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let mut turns = self.follow();
        loop {
            let is_on = self.is_on();
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = turns.next() => {}
                () = tokio::time::sleep_until(self.after(deadline)), if !is_on => return None,
            }
        }
    }
}

/// Beginnings and ends of waits.
#[derive(Debug)]
pub struct Pauses(watch::Receiver<Waits>);

impl Pauses {
    /// Waits for the next one. What has happened since the last one counts.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // Nobody will ever be waited for again.
            std::future::pending::<()>().await;
        }
    }
}

/// A wait for a person that is under way.
#[derive(Debug)]
#[must_use]
pub struct Pause(Arc<Interlude>);

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.0.send_modify(|waits| {
            waits.under_way -= 1;
            if waits.under_way == 0 {
                waits.spent += waits.since.take().map(|since| since.elapsed()).unwrap_or_default();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_deadline_moves_on_while_a_person_is_waited_for() {
        let interlude = Arc::new(Interlude::default());
        let begun = Instant::now();
        let deadline = begun + 10 * SECOND;
        let work = async {
            sleep(5 * SECOND).await;
            let (first, second) = (interlude.begin(), interlude.begin());
            sleep(100 * SECOND).await;
            assert_eq!(
                (interlude.spent(), interlude.spent_so_far()),
                (Duration::ZERO, 100 * SECOND)
            );
            drop(first);
            sleep(100 * SECOND).await;
            drop(second);
            sleep(4 * SECOND).await;
        };
        assert_eq!(interlude.within(deadline, work).await, Some(()));
        assert_eq!(begun.elapsed(), 209 * SECOND);
        assert_eq!(interlude.spent_so_far(), 200 * SECOND);
        assert_eq!(interlude.after(deadline), begun + 210 * SECOND);
        // One second is left of it, and no more.
        assert_eq!(interlude.within(deadline, sleep(2 * SECOND)).await, None);
        assert_eq!(begun.elapsed(), 210 * SECOND);
    }
}
