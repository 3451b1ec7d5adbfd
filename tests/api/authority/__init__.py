"""tests: api/authority."""
