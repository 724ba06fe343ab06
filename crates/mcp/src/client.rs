//! MCP servers as configured: started when needed, watched, and their tools as ordinary tools.
