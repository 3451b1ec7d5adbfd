"""api: trust."""
