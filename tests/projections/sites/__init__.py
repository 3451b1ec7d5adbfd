"""tests: projections/sites."""
