"""projections: income."""
