"""tests: domain/authority."""
