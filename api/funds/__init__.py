"""api: funds."""
