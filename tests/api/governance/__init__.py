"""tests: api/governance."""
