"""tests: domain/epochs."""
