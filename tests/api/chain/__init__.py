"""tests: api/chain."""
