"""domain: leasing."""
