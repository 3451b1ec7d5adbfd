"""domain: corrections."""
