"""api: refusals."""
