"""The plugin, and the other agents."""
