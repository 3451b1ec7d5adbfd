"""tests: api/cloud."""
