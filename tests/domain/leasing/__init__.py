"""tests: domain/leasing."""
