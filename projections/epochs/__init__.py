"""projections: epochs."""
