"""A server of the official Python library that reads files, over HTTP.

    python server.py PORT

The reference server for files speaks over standard streams only, so over HTTP this one stands in for it.
"""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("files", log_level="ERROR")


@server.tool(structured_output=False)
def read_file(path: str) -> str:
    """Reads a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
