"""tests: api/door."""
