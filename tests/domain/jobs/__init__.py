"""tests: domain/jobs."""
