"""tests: projections/income."""
