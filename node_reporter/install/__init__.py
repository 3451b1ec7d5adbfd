"""node_reporter: install."""
