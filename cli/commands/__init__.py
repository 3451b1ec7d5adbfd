"""cli: commands."""
