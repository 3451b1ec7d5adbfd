"""tests: domain/hardware."""
