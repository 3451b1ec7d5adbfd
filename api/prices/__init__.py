"""api: prices."""
