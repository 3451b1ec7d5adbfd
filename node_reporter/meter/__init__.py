"""node_reporter: meter."""
