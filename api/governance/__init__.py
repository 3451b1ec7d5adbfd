"""api: governance."""
