"""tests: domain/market."""
