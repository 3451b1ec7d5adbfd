"""domain: prices."""
