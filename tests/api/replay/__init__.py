"""tests: api/replay."""
