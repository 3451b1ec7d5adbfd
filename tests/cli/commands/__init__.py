"""tests: cli/commands."""
