"""api: income."""
