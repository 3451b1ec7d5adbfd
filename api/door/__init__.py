"""api: door."""
