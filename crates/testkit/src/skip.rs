//! Tests that need something which may not be there: each says so here, and nowhere else.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the build that decides sees to. There, a test that misses one of these has found something out.
const SEEN_TO: &[&str] = &["bwrap"];

/// Says that a test, or a part of one, does not run because something is not there, and counts how often
/// that was said.
///
/// # Panics
///
/// Where `CI` is `true` and the build installs it: there it has to be.
#[expect(clippy::print_stderr, reason = "whoever runs the tests has to see it")]
pub fn skip(what: &str, why: &str) {
    static SKIPS: AtomicU64 = AtomicU64::new(0);
    let number = SKIPS.fetch_add(1, Ordering::Relaxed) + 1;
    eprintln!("skip {number}: {what}: {why}");
    #[expect(clippy::disallowed_methods, reason = "tests alone ask where they run")]
    let decides = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!decides || !SEEN_TO.contains(&what), "{what} has to be there: {why}");
}
