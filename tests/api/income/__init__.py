"""tests: api/income."""
