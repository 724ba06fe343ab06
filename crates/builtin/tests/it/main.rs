//! The built-in tools, through the whole pipeline.
#![expect(clippy::disallowed_methods, reason = "tests make the world they run in")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail")]

mod conformance;
mod edit;
mod file;
mod guard;
mod hostile;
mod http_server;
mod lines;
mod network;
mod race;
mod search;
mod shell;
mod small;
mod support;
mod walking;
mod web_search;
