//! Time in which a person logs in to a server. Meanwhile nobody else is late.
//!
//! A request that a server refuses may wait minutes for a person. Neither the start of the server nor a
//! call that waits for its answer is to blame for that, so their clocks stand still for as long as a login
//! is under way.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The logins to one server.
#[derive(Debug, Default)]
pub(super) struct Interlude(watch::Sender<Logins>);

#[derive(Clone, Copy, Debug, Default)]
struct Logins {
    under_way: usize,
    /// When the first of those under way began.
    since: Option<Instant>,
    /// How much time went into those that are over.
    spent: Duration,
}

impl Interlude {
    /// Says that somebody logs in, for as long as what is returned lives.
    pub(super) fn begin(self: &Arc<Self>) -> LoggingIn {
        self.0.send_modify(|logins| {
            logins.under_way += 1;
            logins.since.get_or_insert_with(Instant::now);
        });
        LoggingIn(Arc::clone(self))
    }

    /// Tells whether somebody logs in.
    pub(super) fn is_on(&self) -> bool {
        self.0.borrow().under_way > 0
    }

    /// Follows who begins to log in, and who is done with it, from now on.
    pub(super) fn follow(&self) -> Turns {
        Turns(self.0.subscribe())
    }

    /// Returns how much time went into logins that are over.
    pub(super) fn spent(&self) -> Duration {
        self.0.borrow().spent
    }

    /// Returns a deadline as it is after the logins there have been.
    pub(super) fn after(&self, deadline: Instant) -> Instant {
        deadline + self.spent()
    }

    /// Does something before a deadline that moves on with every login; `None` if it comes first.
    pub(super) async fn within<T>(
        &self,
        deadline: Instant,
        work: impl Future<Output = T>,
    ) -> Option<T> {
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

/// Beginnings and ends of logins.
#[derive(Debug)]
pub(super) struct Turns(watch::Receiver<Logins>);

impl Turns {
    /// Waits for the next one. What has happened since the last one counts.
    pub(super) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // Nobody will ever log in again.
            std::future::pending::<()>().await;
        }
    }
}

/// A login under way.
#[derive(Debug)]
pub(super) struct LoggingIn(Arc<Interlude>);

impl Drop for LoggingIn {
    fn drop(&mut self) {
        self.0.0.send_modify(|logins| {
            logins.under_way -= 1;
            if logins.under_way == 0 {
                logins.spent +=
                    logins.since.take().map(|since| since.elapsed()).unwrap_or_default();
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
    async fn a_deadline_moves_on_while_somebody_logs_in() {
        let interlude = Arc::new(Interlude::default());
        let begun = Instant::now();
        let deadline = begun + 10 * SECOND;
        let work = async {
            sleep(5 * SECOND).await;
            let (first, second) = (interlude.begin(), interlude.begin());
            sleep(100 * SECOND).await;
            drop(first);
            sleep(100 * SECOND).await;
            drop(second);
            sleep(4 * SECOND).await;
        };
        assert_eq!(interlude.within(deadline, work).await, Some(()));
        assert_eq!(begun.elapsed(), 209 * SECOND);
        assert_eq!(interlude.after(deadline), begun + 210 * SECOND);
        // One second is left of it, and no more.
        assert_eq!(interlude.within(deadline, sleep(2 * SECOND)).await, None);
        assert_eq!(begun.elapsed(), 210 * SECOND);
    }
}
