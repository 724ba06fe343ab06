//! Programs that really run, confined, and really try.
#![expect(clippy::disallowed_methods, reason = "tests make the world they run in")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod attacks;
mod everyday;
mod guard;
mod limits;
mod support;
