"""domain: fleet."""
