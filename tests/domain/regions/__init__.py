"""tests: domain/fleet."""
