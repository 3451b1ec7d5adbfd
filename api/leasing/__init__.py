"""api: leasing."""
