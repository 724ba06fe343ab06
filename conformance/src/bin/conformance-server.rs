//! The server that the MCP conformance suite tests.

fn main() {}
