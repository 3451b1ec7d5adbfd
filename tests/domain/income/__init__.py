"""tests: domain/income."""
