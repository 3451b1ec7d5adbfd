"""tests: projections/metering."""
