"""tests: domain/chain."""
