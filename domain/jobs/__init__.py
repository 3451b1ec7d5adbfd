"""domain: jobs."""
