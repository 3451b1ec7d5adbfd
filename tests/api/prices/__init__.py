"""tests: api/prices."""
