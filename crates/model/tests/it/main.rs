//! Models of providers over real sockets, against a server that speaks every wire.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may fail, and says so"
)]

mod support;

mod answers;
mod bytes;
mod connections;
mod failures;
mod limits;
mod lists;
mod media;
mod names;
mod parameters;
mod recordings;
mod repeats;
mod returned;
mod words;
