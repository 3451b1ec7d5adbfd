"""api: chain."""
