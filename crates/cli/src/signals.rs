//! Ctrl-C and its kin, while a call runs.

use std::io;
use std::time::Duration;

use convoke_core::Cause;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// How soon Ctrl-C has to come again to mean more than the question that it said no to.
const SOON: Duration = Duration::from_secs(2);

/// When Ctrl-C last said no to a question. Where one question follows the other, that is no way out of all of them,
/// so coming again soon it means what it means without a question.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Declined(Option<Instant>);

impl Declined {
    /// Notes that a question was declined.
    pub(crate) const fn note(&mut self, now: Instant) {
        self.0 = Some(now);
    }

    /// Tells whether Ctrl-C, now, is meant for more than the question that is open.
    pub(crate) fn is_insisted(self, now: Instant) -> bool {
        self.0.is_some_and(|at| now.saturating_duration_since(at) < SOON)
    }
}

/// Listens for the signals that end a command. While this exists they do not end the process.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Starts to listen.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one, and says what it means.
    pub(crate) async fn next(&mut self) -> Cause {
        tokio::select! {
            _ = self.interrupt.recv() => Cause::Interrupted,
            _ = self.terminate.recv() => Cause::Terminated,
            _ = self.hang_up.recv() => Cause::Terminated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_soon_is_meant_for_all_of_it() {
        let (mut declined, start) = (Declined::default(), Instant::now());
        assert!(!declined.is_insisted(start), "the first is for the question");
        declined.note(start);
        assert!(declined.is_insisted(start + Duration::from_millis(1_999)));
        assert!(
            !declined.is_insisted(start + SOON),
            "a person who thinks about each declines each"
        );
    }
}
