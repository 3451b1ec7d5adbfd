"""tests: api/epochs."""
