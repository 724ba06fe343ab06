//! The person who is asked to log in.

use std::fmt::Debug;
use std::future::pending;

use async_trait::async_trait;

/// Somebody who can open an address in a browser.
///
/// Whoever implements it decides how the address is shown, and whether a browser is opened. A login ends
/// when the browser comes back to the address that waits for it on this machine. Where the browser runs
/// on another machine it cannot come back; its last address can then be handed in by
/// [`Consent::pasted`].
#[async_trait]
pub trait Consent: Send + Sync + Debug {
    /// Shows the address where a person says yes. The login goes on at the same time, so this may take as
    /// long as it likes; it is dropped when the login is over.
    async fn show(&self, url: &str);

    /// Waits for the address that the browser ended at, pasted by a person. Asked again after one that
    /// was of no use. Without this nobody pastes anything.
    async fn pasted(&self) -> String {
        pending().await
    }

    /// Says why what came back was of no use, pasted or from a browser. The login goes on.
    async fn unusable(&self, why: &str) {
        let _ = why;
    }
}
