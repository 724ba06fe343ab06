//! Runs driven by scripted models, with real tools and a clock that only moves when nothing else does.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail by panicking")]

mod agent_files;
mod agents;
mod approvals;
mod counsel;
mod direct;
mod ends;
mod family;
mod forked;
mod hooks;
mod inquiries;
mod journaled;
mod limits;
mod many_tools;
mod openings;
mod outage;
mod resume;
mod stopping;
mod stuck;
mod support;
mod taken_up;
mod thinking;
mod tree;
mod world;
