"""tests: domain/trust."""
