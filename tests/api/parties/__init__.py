"""tests: api/parties."""
