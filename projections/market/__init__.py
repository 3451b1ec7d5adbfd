"""projections: market."""
