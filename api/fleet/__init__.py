"""api: fleet."""
