"""api: pools."""
