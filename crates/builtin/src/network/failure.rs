//! What went wrong on the way, in words that say whose fault it is.
//!
//! The HTTP library reports a failure as a chain of errors, from "error sending request" down to what
//! the operating system said. Here the chain is searched for the one that matters, and the URL, which
//! may hold a key, is left out of it.

use std::io;

use convoke_core::causes::{chain, find};
use convoke_core::{ErrorKind, ToolError};
use serde_json::json;

use super::guard::{NoAddress, PrivateAddress};
use super::request::HttpUrl;

/// Turns a failed exchange into a tool error.
pub(super) fn explain(error: reqwest::Error, url: &HttpUrl) -> ToolError {
    let error = error.without_url();
    if let Some(private) = find::<PrivateAddress>(&error) {
        return private.refuse(url);
    }
    let (kind, what) = classify(&error);
    let root = chain(&error).last().map(ToString::to_string).unwrap_or_default();
    let place = url.place();
    ToolError::new(kind, format!("`{place}`: {what} ({root})"))
        .with_details(json!({ "host": url.host_name(), "port": url.port() }))
        .caused_by(&error)
}

fn classify(error: &reqwest::Error) -> (ErrorKind, &'static str) {
    use ErrorKind::{Failed, Unavailable};
    if find::<NoAddress>(error).is_some() {
        return (Unavailable, "the host name could not be resolved");
    }
    if find::<rustls::Error>(error).is_some() {
        return (Failed, "no secure connection could be made");
    }
    let system = find::<io::Error>(error).map(io::Error::kind);
    match system {
        Some(io::ErrorKind::ConnectionRefused) => (Unavailable, "the connection was refused"),
        Some(io::ErrorKind::TimedOut) => (Unavailable, "the connection timed out"),
        _ if error.is_connect() => (Unavailable, "could not connect"),
        _ if error.is_body() || error.is_decode() => (Failed, "the answer broke off"),
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
            (Failed, "the connection was cut")
        }
        _ => (Failed, "the request failed"),
    }
}
