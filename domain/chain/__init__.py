"""domain: chain."""
