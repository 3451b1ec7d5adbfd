"""node_reporter: reports."""
