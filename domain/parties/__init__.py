"""domain: parties."""
