//! The model server, seen by a client that reads raw bytes.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod client;
mod connections;
mod failures;
mod faults;
mod golden;
mod lists;
mod process;
#[cfg(feature = "tls")]
mod tls;
