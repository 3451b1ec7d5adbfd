"""tests: domain/parties."""
