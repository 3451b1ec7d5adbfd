"""domain: income."""
