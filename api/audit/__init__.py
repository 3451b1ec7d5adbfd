"""api: audit."""
