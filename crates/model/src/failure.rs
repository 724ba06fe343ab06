//! What went wrong on the way, in words that say whose fault it is.
//!
//! The HTTP library reports a failure as a chain of errors, from "error sending request" down to what
//! the operating system said. Here the chain is searched for the one that matters. The URL, which may
//! hold a key, is left out.

use std::error::Error;
use std::io;

use convoke_core::causes::{chain, find};

use crate::error::ModelErrorKind;

/// A failed exchange: what kind of failure, in which words, and whether a repeat could help.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ModelErrorKind,
    pub(crate) message: String,
    pub(crate) repeatable: bool,
    /// Whether nothing listens there, on this machine.
    pub(crate) not_running: bool,
    pub(crate) doubt: Option<Doubt>,
    /// Whether the other side closed the connection before it answered.
    pub(crate) hung_up: bool,
}

/// What is probably wrong with the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The certificate of the server, or whom we trust.
    Certificate,
    /// Whether the other side speaks TLS.
    Secure,
    /// Whether the other side speaks HTTP, or only HTTP without TLS.
    Http,
}

/// Explains an error of the HTTP library. `place` is the host and port it happened at.
pub(crate) fn explain(error: reqwest::Error, place: &str) -> Failure {
    let error = error.without_url();
    let root = root_of(&error);
    let doubt = doubt(&error, &root);
    let (kind, message) = if doubt == Some(Doubt::Http) {
        (ModelErrorKind::Malformed, format!("{place} does not answer in HTTP: {root}"))
    } else if doubt.is_some() {
        (ModelErrorKind::Unreachable, format!("no secure connection to {place}: {root}"))
    } else if error.is_connect() && error.is_timeout() {
        (ModelErrorKind::Unreachable, format!("{place} does not take the connection"))
    } else if error.is_connect() {
        (ModelErrorKind::Unreachable, format!("cannot reach {place}: {root}"))
    } else if error.is_builder() {
        (ModelErrorKind::Rejected, format!("the request cannot be made: {root}"))
    } else {
        (ModelErrorKind::Cut, format!("the connection to {place} was cut: {root}"))
    };
    // A certificate does not become right by asking again, nor does an address; and nobody starts a
    // server on this machine between two attempts.
    let not_running = doubt.is_none() && error.is_connect() && is_this_machine(place);
    let repeatable = kind.is_passing() && doubt.is_none() && !not_running;
    let hung_up = kind == ModelErrorKind::Cut && is_hang_up(&error, &root);
    Failure { kind, message, repeatable, not_running, doubt, hung_up }
}

fn is_hang_up(error: &reqwest::Error, root: &str) -> bool {
    let closed = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
    find::<io::Error>(error).is_some_and(|error| closed.contains(&error.kind()))
        // The library has no other name for it.
        || root.starts_with("connection closed before message completed")
}

fn is_this_machine(place: &str) -> bool {
    ["127.", "localhost:", "[::1]:"].iter().any(|start| place.starts_with(start))
}

fn doubt(error: &reqwest::Error, root: &str) -> Option<Doubt> {
    match find::<rustls::Error>(error) {
        Some(rustls::Error::InvalidCertificate(_)) => Some(Doubt::Certificate),
        Some(_) => Some(Doubt::Secure),
        // The library has no other name for it.
        None if root.starts_with("invalid HTTP") => Some(Doubt::Http),
        None => None,
    }
}

/// Returns the words of the error that led to all the others.
pub(crate) fn root_of(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}
