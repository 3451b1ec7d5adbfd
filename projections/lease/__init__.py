"""projections: lease."""
