"""api: replay."""
