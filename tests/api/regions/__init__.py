"""tests: api/fleet."""
