"""node_reporter: agent."""
