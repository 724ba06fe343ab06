//! MCP in both directions: servers whose tools become tools of Convoke, and tools of Convoke that are
//! served to others.
//!
//! - [`client`]: servers as configured, their states, their tools.
//! - [`auth`]: how a remote server is told who asks.
//! - [`serve`]: tools and agents as an MCP server.
//!
//! The protocol library stays inside: none of its types is part of this crate's interface.

pub mod auth;
pub mod client;
pub mod serve;
