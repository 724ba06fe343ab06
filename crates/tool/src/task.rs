//! Runs a piece of work so that its failure stays its own. The only module that spawns tasks.
//!
//! A contained task may panic without taking anybody along, is stopped when its handle is dropped,
//! and runs beside its owner, so a deadline fires even if the work blocks its thread.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::{JoinError, JoinHandle};

/// How contained work ended without a value.
#[derive(Debug)]
pub(crate) enum Uncontained {
    /// It panicked; this is what it said.
    Panicked(String),
    /// The runtime is shutting down.
    Aborted,
}

impl Uncontained {
    /// Describes a panic by what it said.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self::Panicked(text.unwrap_or_else(|| "no message".into()))
    }
}

impl From<JoinError> for Uncontained {
    fn from(error: JoinError) -> Self {
        match error.try_into_panic() {
            Ok(payload) => Self::panicked(payload.as_ref()),
            Err(_) => Self::Aborted,
        }
    }
}

/// Work under way; dropping this stops it.
#[derive(Debug)]
pub(crate) struct Contained<T>(JoinHandle<T>);

impl<T: Send + 'static> Contained<T> {
    #[expect(clippy::disallowed_methods, reason = "this is the spawner that others use")]
    pub(crate) fn spawn(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl<T> Future for Contained<T> {
    type Output = Result<T, Uncontained>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_err(Uncontained::from)
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_value() {
        let ended = Contained::spawn(async { panic!("oh no: {}", 7) }).await;
        assert!(matches!(ended, Err(Uncontained::Panicked(message)) if message == "oh no: 7"));
    }

    #[tokio::test]
    async fn dropping_the_handle_stops_the_work() {
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let work = Contained::spawn(async move {
            std::future::pending::<()>().await;
            drop(held);
        });
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&alive), 2);
        drop(work);
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
