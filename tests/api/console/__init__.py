"""tests: api/console."""
