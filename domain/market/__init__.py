"""domain: market."""
