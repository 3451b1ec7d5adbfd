"""tests: api/funds."""
