"""tests: domain/corrections."""
