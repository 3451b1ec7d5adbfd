"""tests: api/door/lines."""
