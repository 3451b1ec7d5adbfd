"""tests: domain/pools."""
