"""api: parties."""
