"""tests: api/metering."""
