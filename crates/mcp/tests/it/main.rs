//! Servers as a client meets them: well-behaved, slow, broken, and hostile.
#![expect(clippy::disallowed_methods, reason = "tests make the world they run in")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may fail"
)]

mod authorized;
mod calls;
mod faults;
mod http;
mod lists;
mod processes;
mod questions;
mod real;
mod scripted;
mod visits;
mod web;
