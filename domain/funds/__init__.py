"""domain: funds."""
