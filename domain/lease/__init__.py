"""domain: lease."""
