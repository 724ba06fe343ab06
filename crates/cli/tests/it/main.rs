//! The command as people and programs use it: the built binary, in a world made for each test.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may fail by panicking, and makes the world the command runs in"
)]

mod agent_runs;
mod agents;
mod agents_check;
mod agents_ends;
mod agents_used;
mod agents_verdict;
mod approvals;
mod arguments;
mod audit;
mod call;
mod chat;
mod comeback;
mod config;
mod demo;
mod doctor;
mod help;
mod hostile;
mod inquiries;
mod journal;
mod mcp;
mod mcp_added;
mod mcp_cancel;
mod mcp_ends;
mod mcp_left_out;
mod mcp_login;
mod mcp_serve;
mod mcp_shown;
mod mcp_switched;
mod pipes;
mod policy;
mod protect;
mod pty;
mod recorded;
mod run;
mod runs;
mod sandbox;
mod schemas;
mod screen;
mod secrets;
mod signals;
mod support;
mod terminal;
mod tools;
mod trust;
mod trust_entries;
mod waiting;
mod workspace;
