"""api: openapi."""
