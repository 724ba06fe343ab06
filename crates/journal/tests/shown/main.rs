//! Runs shown to people: as a timeline, a page, Markdown and bare events.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panicking")]

mod any;
mod browser;
mod hostile;
mod jsonl;
mod markdown;
mod page;
mod sample;
mod timeline;
