"""tests: domain/governance."""
