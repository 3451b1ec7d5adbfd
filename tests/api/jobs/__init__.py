"""tests: api/jobs."""
