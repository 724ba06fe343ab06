//! Tools and agents of Convoke as an MCP server, over standard streams or HTTP.
