"""tests: projections/fleet."""
