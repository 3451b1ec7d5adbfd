"""tests: domain/prices."""
