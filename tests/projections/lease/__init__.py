"""tests: projections/lease."""
