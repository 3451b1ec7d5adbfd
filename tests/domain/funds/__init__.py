"""tests: domain/funds."""
