"""tests: domain/metering."""
