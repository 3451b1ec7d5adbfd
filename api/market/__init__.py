"""api: market."""
