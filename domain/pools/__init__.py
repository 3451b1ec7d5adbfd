"""domain: pools."""
