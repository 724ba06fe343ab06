//! Integration tests of the facade: configuration from real files in a temporary directory.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail by panicking, and writes the files that the library reads"
)]

mod agents;
mod config;
mod denied;
mod hooks;
#[cfg(target_os = "linux")]
mod later;
mod matrix;
mod mcp;
mod mission;
mod runtime;
mod serve;
mod tree;
mod workspace;
