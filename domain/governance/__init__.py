"""domain: governance."""
