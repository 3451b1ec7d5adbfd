"""tests: projections/trust."""
