"""node_reporter: executor."""
