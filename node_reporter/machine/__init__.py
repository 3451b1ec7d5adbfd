"""node_reporter: machine."""
