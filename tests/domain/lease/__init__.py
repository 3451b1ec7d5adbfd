"""tests: domain/lease."""
