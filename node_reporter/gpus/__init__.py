"""node_reporter: gpus."""
