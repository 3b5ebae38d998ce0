"""What commands, the console, the MCP server and jobs call: each service changes the vault, or reports on it."""
