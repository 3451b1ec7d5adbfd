"""domain: epochs."""
