"""api: epochs."""
