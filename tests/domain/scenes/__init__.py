"""tests: domain/scenes."""
