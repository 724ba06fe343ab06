//! Ctrl-C and its kin, while a call runs.

use std::io;

use convoke_core::Cause;
use tokio::signal::unix::{Signal, SignalKind, signal};

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
