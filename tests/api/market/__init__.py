"""tests: api/market."""
