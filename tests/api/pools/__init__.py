"""tests: api/pools."""
