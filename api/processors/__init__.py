"""api: processors."""
