"""tests: projections/parties."""
