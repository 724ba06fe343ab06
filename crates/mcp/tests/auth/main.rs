//! Logins from the first refusal to the last refresh, against an authorization server and a server of our
//! own. Nothing leaves this machine.
#![expect(clippy::disallowed_methods, reason = "tests make the world they run in")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail")]

mod browser;
mod login;
mod logins;
mod machine;
mod refresh;
mod refusals;
mod secrets;
mod sockets;
mod step_up;
mod store;
mod support;
mod world;
