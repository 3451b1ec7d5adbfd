"""projections: governance."""
