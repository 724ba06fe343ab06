//! The standing stream: where a server with a session says what is no answer to anything.
//!
//! The library asks for it in the background, once the handshake is done. A question that a server puts
//! to a person before it is there is lost, and with it the call that waits for the answer. So whatever may
//! lead to a question waits until the server has the stream, or has said that it has none.

use std::time::Duration;

use tokio::sync::watch;

/// How long is waited. Some servers begin their answer only when they have something to say.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the standing stream is on its way.
#[derive(Debug, Default)]
pub(super) struct Standing {
    expected: watch::Sender<bool>,
}

impl Standing {
    /// There is a session: the stream is about to be asked for.
    pub(super) fn expect(&self) {
        self.expected.send_replace(true);
    }

    /// It is there, or it will never be.
    pub(super) fn settle(&self) {
        self.expected.send_replace(false);
    }

    /// Waits until that is known. A server that lets everybody wait does so once.
    pub(super) async fn settled(&self) {
        let mut expected = self.expected.subscribe();
        let waiting = expected.wait_for(|expected| !*expected);
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            self.settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_never_comes_is_waited_for_once() {
        let standing = Standing::default();
        let begun = Instant::now();
        standing.settled().await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "nothing is expected yet");
        standing.expect();
        standing.settled().await;
        assert_eq!(begun.elapsed(), PATIENCE);
        standing.settled().await;
        assert_eq!(begun.elapsed(), PATIENCE);
    }
}
