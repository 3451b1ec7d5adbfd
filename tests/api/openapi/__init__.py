"""tests: api/openapi."""
