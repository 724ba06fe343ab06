//! The pipeline as its users see it.
#![expect(clippy::disallowed_methods, reason = "tests make the world they run in")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail")]

mod absent;
mod asking;
mod batch;
mod commands;
mod hooks;
mod hooks_ask;
mod inquiring;
mod pipeline;
mod support;
mod views;
