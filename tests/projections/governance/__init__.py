"""tests: projections/governance."""
