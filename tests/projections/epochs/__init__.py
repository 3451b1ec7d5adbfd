"""tests: projections/epochs."""
