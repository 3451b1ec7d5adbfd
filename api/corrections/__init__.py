"""api: corrections."""
