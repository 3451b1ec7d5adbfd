"""domain: trust."""
