//! The client that the MCP conformance suite tests.

fn main() {}
