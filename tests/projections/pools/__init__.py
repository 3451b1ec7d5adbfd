"""tests: projections/pools."""
