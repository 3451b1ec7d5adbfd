"""tests: projections/market."""
