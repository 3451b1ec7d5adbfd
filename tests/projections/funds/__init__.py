"""tests: projections/funds."""
