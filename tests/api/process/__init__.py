"""tests: api/process."""
