"""tests: api/processors."""
