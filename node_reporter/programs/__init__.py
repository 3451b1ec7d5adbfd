"""node_reporter: programs."""
