"""tests: api/leasing."""
