"""tests: domain/cloud."""
