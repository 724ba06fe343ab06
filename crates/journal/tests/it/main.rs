//! Journals as their users see them, and as crashes, full disks and other processes leave them.
#![expect(clippy::disallowed_methods, reason = "tests make the world they run in")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod audit;
mod blobs;
mod chain;
mod child;
mod collect;
mod failing;
mod find;
mod fork;
mod head;
mod inbox;
mod list;
mod owner;
mod round_trip;
mod support;
mod torn;
