"""tests: api/corrections."""
