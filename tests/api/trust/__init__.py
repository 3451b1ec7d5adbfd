"""tests: api/trust."""
