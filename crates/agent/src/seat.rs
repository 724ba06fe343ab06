//! How many agents of a tree work at once.
//!
//! An agent that works has a seat. While it only waits for agents it called, it gives the seat back, so
//! that a tree with few seats and many levels never waits for itself.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The seat of one agent.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Nothing for the first agent, which always works.
    seats: Option<Arc<Semaphore>>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
    /// How many agents it waits for.
    away: AtomicUsize,
}

impl Seat {
    /// The first agent needs none.
    pub(crate) const fn always() -> Self {
        Self { seats: None, held: Mutex::new(None), away: AtomicUsize::new(0) }
    }

    /// A seat that has to be taken.
    pub(crate) const fn among(seats: Arc<Semaphore>) -> Self {
        Self { seats: Some(seats), held: Mutex::new(None), away: AtomicUsize::new(0) }
    }

    /// Waits for a free seat, unless it has one.
    pub(crate) async fn take(&self) {
        let Some(seats) = self.seats.as_ref().filter(|_| self.held().is_none()) else { return };
        // The semaphore is never closed; without a permit the agent would still be in order.
        let permit = Arc::clone(seats).acquire_owned().await.ok();
        *self.held() = permit;
    }

    /// Gives the seat back until all that was left for has come back.
    pub(crate) fn leave(&self) -> Away<'_> {
        if self.away.fetch_add(1, Ordering::AcqRel) == 0 {
            self.held().take();
        }
        Away(self)
    }

    fn held(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for an agent it called. The seat is taken again before there is work to do.
#[derive(Debug)]
pub(crate) struct Away<'a>(&'a Seat);

impl Drop for Away<'_> {
    fn drop(&mut self) {
        self.0.away.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_others_gives_its_seat_to_them() {
        let seats = Arc::new(Semaphore::new(1));
        let (parent, child) = (Seat::among(Arc::clone(&seats)), Seat::among(Arc::clone(&seats)));
        parent.take().await;
        parent.take().await;
        let full = tokio::time::timeout(Duration::from_secs(1), child.take()).await;
        assert!(full.is_err(), "there is one seat");
        let away = parent.leave();
        child.take().await;
        drop(away);
        let full = tokio::time::timeout(Duration::from_secs(1), parent.take()).await;
        assert!(full.is_err(), "the child works");
        drop(child);
        parent.take().await;
        assert_eq!(seats.available_permits(), 0);
        Seat::always().take().await;
    }
}
