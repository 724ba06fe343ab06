//! Clients against our server: the official library's, and raw bytes.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may fail by panicking"
)]

mod calls;
mod ends;
mod extras;
mod http;
mod lines;
mod support;
mod tasks;
