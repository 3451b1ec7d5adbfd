"""domain: hardware."""
