"""api: jobs."""
