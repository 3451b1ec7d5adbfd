"""tests: api/sites."""
