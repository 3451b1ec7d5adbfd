"""tests: domain/sites."""
